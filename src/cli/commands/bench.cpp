// `inferno bench`: the speed of a model on this machine, in tokens/s and as a share of the memory bandwidth.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "backend/cpu/host.h"
#include "base/error.h"
#include "base/file.h"
#include "base/thread_pool.h"
#include "checkpoint/config_json.h"
#include "cli/bench/measure.h"
#include "cli/bench/report.h"
#include "cli/commands/shared/arguments.h"
#include "cli/commands/shared/command_line.h"
#include "cli/commit.h"
#include "cli/doctor/kernels.h"
#include "cli/environment.h"
#include "cli/loading.h"
#include "cli/version.h"
#include "model/synthetic/random_checkpoint.h"
#include "model/synthetic/shapes.h"
#include "service/model_files.h"

namespace inferno::command {
namespace {

namespace fs = std::filesystem;

struct BenchOptions {
  ResolvedModel model;
  std::string shape, weights, plot, output = "md";
  std::vector<int> prompts = {512}, generate = {128}, depths = {0}, batches = {1};
  int repeat = 3;
  float router_skew = 0.0f;
  Sampling sampling;
  bool engine = false, verbose = false, profile = false;
  DeviceOptions device;
};

WeightFormat format_of(std::string_view name) {
  if (const auto format = format_named(name)) return *format;
  std::vector<std::string_view> names;
  for (const WeightFormat format : all_formats) names.push_back(name_of(format));
  fail(ErrorKind::invalid_request,
       fmt::format("--weights {}: expected one of {}, or DENSE+EXPERTS", name, fmt::join(names, ", ")));
}

// "q8_0", or "bf16+mxfp4" for dense matrices and experts.
RandomWeights parse_weights(std::string_view text) {
  const std::size_t plus = text.find('+');
  const WeightFormat dense = format_of(text.substr(0, plus));
  return {.dense = dense,
          .experts = plus == std::string_view::npos ? dense : format_of(text.substr(plus + 1))};
}

std::unique_ptr<Checkpoint> open(const BenchOptions& options, BenchReport& report) {
  if (options.shape.empty()) {
    report.model = options.model.name;
    report.weights = "as stored";
    return ModelFiles(options.model.path).checkpoint();
  }
  const Shape& shape = shape_named(options.shape);
  report.model = shape.name;
  report.weights = options.weights.empty() ? std::string(shape.weights) : options.weights;
  RandomWeights weights = parse_weights(report.weights);
  weights.router_skew = options.router_skew;
  return random_checkpoint(parse_config(shape.config, std::string(shape.name)), shape.type, weights);
}

int max_of(const std::vector<int>& values) {
  return *std::max_element(values.begin(), values.end());
}

// The whole command, so that a stored result can be reproduced.
std::string command_of(const BenchOptions& options, const BenchReport& report) {
  std::string out = options.shape.empty()
                        ? fmt::format("inferno bench {}", report.model)
                        : fmt::format("inferno bench --shape {} --weights {}", options.shape, report.weights);
  out += fmt::format(" --prompt {} --generate {} --depth {} --batch {} --repeat {}",
                     fmt::join(options.prompts, ","), fmt::join(options.generate, ","),
                     fmt::join(options.depths, ","), fmt::join(options.batches, ","), options.repeat);
  if (options.engine) out += " --engine";
  if (options.router_skew > 0.0f) out += fmt::format(" --router-skew {}", options.router_skew);
  const Sampling& sampling = options.sampling;
  if (sampling.temperature > 0.0f) out += fmt::format(" --temperature {}", sampling.temperature);
  if (sampling.top_k > 0) out += fmt::format(" --top-k {}", sampling.top_k);
  if (sampling.top_p < 1.0f) out += fmt::format(" --top-p {}", sampling.top_p);
  out += fmt::format(" --device {}", options.device.device);
  if (options.device.threads > 0) out += fmt::format(" --threads {}", options.device.threads);
  return out;
}

void measure(const BenchOptions& options, Decoder& decoder, Backend& backend, const LoadReport& loaded,
             BenchReport& report) {
  const int context = decoder.limits().context;
  for (const int batch : options.batches) {
    Measurer measurer(decoder, backend, batch, context, options.sampling);
    for (const int tokens : options.prompts) {
      if (tokens > 0) report.rows.push_back(measurer.prompt(tokens, options.repeat));
    }
    for (const int depth : options.depths) {
      for (const int tokens : options.generate) {
        if (tokens == 0) continue;
        report.rows.push_back(
            measurer.generate(tokens, depth, options.repeat, loaded.weights.step_bytes(batch)));
        if (options.profile) measurer.profile(tokens, depth);
      }
    }
  }
}

// Called before and after the tests, because the bandwidth of a shared machine varies.
void add_half_of_bandwidth(BenchReport& report, Backend& backend) {
  constexpr std::size_t gibibyte = std::size_t{1} << 30;
  const double of_device = backend.read_bandwidth();
  report.bandwidth_one_thread += 0.5 * (of_device > 0.0 ? of_device : cpu::read_bandwidth(1, gibibyte));
  report.bandwidth += 0.5 * (of_device > 0.0 ? of_device : cpu::read_bandwidth(report.threads, gibibyte));
}

// A chunk large enough to be bound by arithmetic, small enough to leave memory for the rest.
int max_tokens(const DeviceInfo& device) {
  return device.kernels.starts_with("sm_") ? 2048 : 512;
}

// Through the engine: as many streams as the batch, submitted together.
void measure_engine(const BenchOptions& options, std::unique_ptr<Backend> backend, LoadedModel model,
                    BenchReport& report) {
  EngineMeasurer measurer(std::move(backend), std::move(model.decoder), max_of(options.batches),
                          options.sampling);
  for (const int batch : options.batches) {
    for (const int tokens : options.generate) {
      if (tokens == 0) continue;
      report.rows.push_back(
          measurer.generate(batch, tokens, options.repeat, model.report.weights.step_bytes(batch)));
    }
  }
}

void write_plot(const fs::path& path, const BenchReport& report) {
  std::ofstream file(path, std::ios::binary);
  file << as_svg(report);
  file.close();
  if (!file) fail(ErrorKind::io, fmt::format("{}: cannot write the file", path.string()));
}

void run(const BenchOptions& options) {
  const fs::path plot = options.plot.empty() ? fs::path() : output_path(options.plot);
  BenchReport report;
  report.version = version;
  report.commit = commit;
  report.host = fmt::format("{}, {} usable cores", cpu::cpu_name(), usable_cores());
  report.date = fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)));
  const auto checkpoint = open(options, report);
  auto backend = make_backend(options.device);
  const DeviceInfo info = backend->info();
  report.device = info.name;
  report.kernels = info.kernels;
  report.threads = info.threads;
  report.command = command_of(options, report);

  const int batch = max_of(options.batches);
  const int context =
      std::max(max_of(options.prompts), max_of(options.generate) + max_of(options.depths) + 2);
  const auto start = std::chrono::steady_clock::now();
  LoadedModel model = load_model(
      *checkpoint, *backend,
      {.max_tokens = std::max(max_tokens(info), batch), .max_logit_rows = batch, .context = context});
  report.load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  report.weight_bytes = model.report.weights.bytes;
  report.token_bytes = model.report.weights.token_bytes;
  report.parameters = model.report.weights.parameters;
  report.notes = model.report.notes;
  report.conversions = model.report.conversions;
  if (options.verbose) {
    print_load_report(model.report, report.load_seconds);
    fmt::print(stderr, "{}",
               doctor::describe_kernels(*backend, model.decoder->spec(), model.decoder->weights()));
  }

  add_half_of_bandwidth(report, *backend);
  measure(options, *model.decoder, *backend, model.report, report);
  add_half_of_bandwidth(report, *backend);
  if (options.engine) measure_engine(options, std::move(backend), std::move(model), report);
  if (!options.plot.empty()) write_plot(plot, report);
  const auto print = options.output == "json" ? as_json : options.output == "csv" ? as_csv : as_markdown;
  fmt::print("{}", print(report));
}

// Random weights make all tokens equally likely, which is the worst case for sampling.
void add_sampling_options(Command command, Sampling& sampling) {
  command.option("--temperature", sampling.temperature, "0: always the most likely token")
      .range(0.0, 100.0)
      .shows_default();
  command.option("--top-k", sampling.top_k, "sample from the K most likely tokens; 0: from all")
      .range(0, 1 << 20)
      .shows_default();
  command
      .option("--top-p", sampling.top_p,
              "sample from the most likely tokens that together have this probability")
      .range(0.0, 1.0)
      .shows_default();
}

}  // namespace

void bench(CommandLine app) {
  const Command command = app.command("bench", "Measure how fast a model runs on this machine");
  const auto options = std::make_shared<BenchOptions>();
  options->sampling.temperature = 0.0f;
  const Option model = add_model_argument(command, options->model);
  std::vector<std::string_view> names;
  for (const Shape& shape : shapes()) names.push_back(shape.name);
  const Option shape =
      command
          .option("--shape", options->shape,
                  fmt::format("a well-known model with random weights: {}", fmt::join(names, ", ")))
          .excludes(model);
  command.option("--weights", options->weights,
                 "with --shape: a weight format, or DENSE+EXPERTS (bf16+mxfp4)");
  const auto list = [&](const char* name, std::vector<int>& values, int min, const char* help) {
    command.option(name, values, help).separated_by(',').range(min, 1 << 20).shows_default();
  };
  list("-p,--prompt", options->prompts, 0, "prompt lengths to time; 0 for none");
  list("-n,--generate", options->generate, 0, "numbers of tokens to generate; 0 for none");
  list("-d,--depth", options->depths, 0, "tokens already in the cache before generating");
  list("-b,--batch", options->batches, 1, "concurrent sequences");
  command
      .option("--router-skew", options->router_skew,
              "with --shape: standard deviation of router biases; at 2 a few experts take most tokens")
      .range(0.0, 100.0)
      .needs(shape);
  add_sampling_options(command, options->sampling);
  command.flag("--profile", options->profile,
               "generate one more token after each test, for `ncu --profile-from-start off`");
  command.flag("--engine", options->engine,
               "measure generation through the engine too, one stream for each sequence of the batch");
  command.option("-r,--repeat", options->repeat, "timed runs of each test").range(1, 1000).shows_default();
  command.option("-o,--output", options->output, "md, json or csv")
      .one_of({"md", "json", "csv"})
      .shows_default();
  command.option("--plot", options->plot,
                 "also plot throughput by batch size and decoding by depth to this SVG file");
  command.flag(
      "--verbose", options->verbose,
      "print on stderr how fast the model was read, which tensors were converted and which kernels run");
  command.flag("--json", [options] { options->output = "json"; }, "the same as -o json");
  add_device_options(command, options->device);
  command.run([options] {
    if (!options->weights.empty() && options->shape.empty()) {
      fail(ErrorKind::invalid_request, "--weights needs --shape: a model's files already have a format");
    }
    if (options->model.path.empty() && options->shape.empty()) {
      options->model = Catalogue(catalogue_settings(Environment::of_process())).builtin();
      fmt::print(stderr, "model: {} (choose another with MODEL or --shape)\n", options->model.name);
    }
    run(*options);
  });
}

}  // namespace inferno::command
