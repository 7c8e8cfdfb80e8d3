// `inferno bench`: the speed of a model on this machine, in tokens/s and as a share of the memory bandwidth.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <limits>
#include <vector>

#include "backend/cpu/host.h"
#include "base/error.h"
#include "base/file.h"
#include "base/thread_pool.h"
#include "base/thread_time.h"
#include "base/utf8.h"
#include "chat/conversation.h"
#include "checkpoint/config_json.h"
#include "cli/bench/constrain_bench.h"
#include "cli/bench/engine_load.h"
#include "cli/bench/measure.h"
#include "cli/bench/report.h"
#include "cli/bench/serve_load.h"
#include "cli/bench/stored_results.h"
#include "cli/commands/shared/arguments.h"
#include "cli/commands/shared/command_line.h"
#include "cli/commit.h"
#include "cli/doctor/kernels.h"
#include "cli/environment.h"
#include "cli/loading.h"
#include "cli/terminal/streams.h"
#include "cli/version.h"
#include "model/export/weight_types.h"
#include "model/synthetic/random_checkpoint.h"
#include "model/synthetic/shapes.h"
#include "service/constraint_store.h"
#include "service/loading/model_files.h"

namespace inferno::command {
namespace {

namespace fs = std::filesystem;

struct BenchOptions {
  ResolvedModel model;
  std::string model_name;  // of -m, resolved when it is needed
  std::string shape, weights, plot, stored, output = "md", constrain, schema;
  std::vector<int> prompts = {512}, generate = {128}, depths = {0}, batches = {1};
  int repeat = 3;
  float router_skew = 0.0f;
  Sampling sampling;
  bool engine = false, harmony_mask = false, verbose = false, profile = false;
  DeviceOptions device;
  bool loads_engine = false;  // --load
  int parallel = 0;           // of --load; 0: chosen
  ServeLoadOptions serve;     // its `load` is also that of --load

  bool needs_tokenizer() const { return harmony_mask || !schema.empty(); }
};

// Quantizations of safetensors by the names that people use, and the blocks that they become.
struct Published {
  std::string_view name;
  WeightFormat format;
};
constexpr std::array published = {
    Published{"awq-g128", WeightFormat::int4_128},    Published{"gptq-g128", WeightFormat::q4_0},
    Published{"fp8-block", WeightFormat::fp8_128},    Published{"fp8-channel", WeightFormat::fp8_128},
    Published{"int8-channel", WeightFormat::int8_64}, Published{"nvfp4", WeightFormat::nvfp4_64}};

WeightFormat format_of(std::string_view name) {
  if (const auto format = format_named(name)) return *format;
  std::vector<std::string_view> names;
  for (const Published& one : published) {
    if (one.name == name) return one.format;
    names.push_back(one.name);
  }
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
  if (options.harmony_mask) out += " --harmony-mask";
  if (!options.schema.empty()) out += fmt::format(" --schema {}", options.schema);
  if (options.router_skew > 0.0f) out += fmt::format(" --router-skew {}", options.router_skew);
  const Sampling& sampling = options.sampling;
  if (sampling.temperature > 0.0f) out += fmt::format(" --temperature {}", sampling.temperature);
  if (sampling.top_k > 0) out += fmt::format(" --top-k {}", sampling.top_k);
  if (sampling.top_p < 1.0f) out += fmt::format(" --top-p {}", sampling.top_p);
  out += fmt::format(" --device {}", options.device.device);
  if (options.device.threads > 0) out += fmt::format(" --threads {}", options.device.threads);
  if (!options.device.quantize.empty()) out += fmt::format(" --quantize {}", options.device.quantize);
  if (!options.device.cache.is_auto()) out += fmt::format(" --cache-type {}", name_of(options.device.cache));
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

std::shared_ptr<PendingConstraint> compiled(std::shared_ptr<PendingConstraint> pending) {
  pending->wait();
  pending->get();  // throws what is wrong with the constraint
  return pending;
}

std::shared_ptr<PendingConstraint> compiled_schema(const BenchOptions& options, ConstraintStore& store) {
  constexpr std::uint64_t max_bytes = std::uint64_t{2} << 20;
  ReplyConstraint constraint;
  constraint.text = TextConstraint{.kind = TextConstraint::Kind::schema,
                                   .source = read_file(options.schema, max_bytes, Pipes::accept),
                                   .place = "/schema"};
  return compiled(store.compile(constraint, {}, nullptr));
}

// The form of a reply in Harmony, without functions.
std::shared_ptr<PendingConstraint> compiled_harmony(const ModelFiles& files, const Tokenizer& tokenizer,
                                                    ConstraintStore& store) {
  const auto chat = files.chat_format(tokenizer);
  Conversation conversation;
  conversation.messages = Json::array({{{"role", "user"}, {"content", "Hello"}}});
  const ReplyShape shape = chat ? chat->shape(conversation, chat->render(conversation)) : ReplyShape{};
  if (shape.kind != ReplyShape::Kind::channels) {
    fail(ErrorKind::invalid_request, "--harmony-mask: replies of this model are not in Harmony",
         {.why = "its chat format does not have the channels of gpt-oss",
          .next = "choose gpt-oss or its tokenizer.json with -m, or leave out --harmony-mask"});
  }
  return compiled(store.compile({}, shape, nullptr));
}

// What answers are measured with beside free ones. It needs the store as long as it is used.
struct BenchConstraints {
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ConstraintStore> store;
  MeasuredConstraint harmony, schema;
};

BenchConstraints compile_constraints(const BenchOptions& options, int vocab) {
  BenchConstraints out;
  if (!options.needs_tokenizer()) return out;
  const ModelFiles files(options.model.path);
  out.tokenizer = files.tokenizer();
  if (out.tokenizer->size() > vocab)
    fail(ErrorKind::invalid_request,
         fmt::format("the tokenizer has {} tokens and the model {}; they do not belong together",
                     out.tokenizer->size(), vocab),
         {.why = {}, .next = "choose the tokenizer.json of this model with -m"});
  out.store = std::make_unique<ConstraintStore>(*out.tokenizer);
  if (options.harmony_mask)
    out.harmony = {.name = "harmony", .constraint = compiled_harmony(files, *out.tokenizer, *out.store)};
  if (!options.schema.empty())
    out.schema = {.name = "schema", .constraint = compiled_schema(options, *out.store)};
  return out;
}

// Through the engine: as many streams as the batch, submitted together.
void measure_engine(const BenchOptions& options, std::unique_ptr<Backend> backend, LoadedModel model,
                    BenchReport& report) {
  const BenchConstraints constraints = compile_constraints(options, model.decoder->spec().vocab);
  const MeasuredConstraint& harmony = constraints.harmony;
  const MeasuredConstraint& schema = constraints.schema;
  EngineMeasurer measurer(std::move(backend), std::move(model.decoder), max_of(options.batches),
                          options.sampling);
  for (const int batch : options.batches) {
    for (const int tokens : options.generate) {
      if (tokens == 0) continue;
      const double bytes = model.report.weights.step_bytes(batch);
      report.rows.push_back(measurer.generate(batch, tokens, options.repeat, bytes));
      if (harmony.constraint)
        report.rows.push_back(measurer.generate(batch, tokens, options.repeat, bytes, harmony));
      if (!schema.constraint) continue;
      report.rows.push_back(measurer.generate(batch, tokens, options.repeat, bytes, schema));
      if (batch > 1)
        report.rows.push_back(
            measurer.generate_half(batch, tokens, options.repeat, bytes, schema.constraint));
    }
  }
}

void write_plot(const fs::path& path, const BenchReport& report) {
  write_file(path, as_svg(report));
}

// Where and when a result was measured, so that it can be kept.
template <typename Report>
void set_origin(Report& report) {
  report.version = version;
  report.commit = commit;
  report.host = fmt::format("{}, {} usable cores", cpu::cpu_name(), usable_cores());
  report.date = fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)));
}

// Of --load.
void run_load(const BenchOptions& options) {
  load::LoadOptions load = options.serve.load;
  load.temperature = options.sampling.temperature;
  load.json = options.output == "json";
  if (!options.plot.empty()) load.plot = output_path(options.plot);
  const std::uint64_t seed = load::seed_of(load);
  const std::vector<load::Level> levels = load::levels(load, seed);
  BenchReport report;
  const auto checkpoint = open(options, report);
  auto backend = make_backend(options.device);
  const DeviceInfo info = backend->info();
  const int parallel = parallel_for(load, options.parallel);
  LoadedModel model = load_model(*checkpoint, *backend,
                                 {.max_tokens = std::max(backend->step_rows().all, parallel),
                                  .max_logit_rows = parallel,
                                  .context = context_for(levels),
                                  .cache = options.device.cache},
                                 parse_quantize(options.device.quantize));
  run_engine_load(std::move(backend), std::move(model.decoder),
                  {.options = load,
                   .levels = levels,
                   .seed = seed,
                   .parallel = parallel,
                   .title = fmt::format("{} {} · {}", report.model, report.weights, info.name),
                   .json = {{"backend", "inferno"},
                            {"model_id", report.model},
                            {"weights", report.weights},
                            {"device", info.name},
                            {"threads", info.threads},
                            {"parallel", parallel}}});
}

void run(const BenchOptions& options) {
  const fs::path plot = options.plot.empty() ? fs::path() : output_path(options.plot);
  BenchReport report;
  set_origin(report);
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
  LoadedModel model = load_model(*checkpoint, *backend,
                                 {.max_tokens = std::max(backend->step_rows().all, batch),
                                  .max_logit_rows = batch,
                                  .context = context,
                                  .cache = options.device.cache},
                                 parse_quantize(options.device.quantize));
  report.load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  report.weight_bytes = model.report.weights.bytes;
  report.token_bytes = model.report.weights.token_bytes;
  report.parameters = model.report.weights.parameters;
  report.notes = model.report.notes;
  report.conversions = model.report.conversions;
  if (options.verbose) {
    print_load_report(model.report, report.load_seconds);
    say(doctor::describe_kernels(*backend, model.decoder->spec(), model.decoder->weights()));
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

void add_test_options(Command command, BenchOptions& options) {
  const auto list = [&](const char* name, std::vector<int>& values, int min, const char* help) {
    command.option(name, values, help).separated_by(',').range(min, 1 << 20).shows_default();
  };
  list("-p,--prompt", options.prompts, 0, "prompt lengths to time; 0 for none");
  list("-n,--generate", options.generate, 0, "numbers of tokens to generate; 0 for none");
  list("-d,--depth", options.depths, 0, "tokens already in the cache before generating");
  list("-b,--batch", options.batches, 1, "concurrent sequences");
}

// Of --serve and --load. Names are those of vLLM's `bench serve` where it has them.
void add_load_options(Command command, load::LoadOptions& load, Option url, Option engine) {
  const auto options = std::make_shared<std::vector<std::pair<std::string, Option>>>();
  const auto add = [&](const std::string& name, auto& value, const char* help) {
    const Option option = command.option(name, value, help).group("Load on a server or the engine");
    options->emplace_back(name.substr(0, name.find(',')), option);
    return option;
  };
  const Option streams = add("--concurrency,--max-concurrency", load.concurrency,
                             "requests at once, each followed by the next; with --rate or --trace a limit")
                             .separated_by(',')
                             .range(1, 1 << 16)
                             .shows_default();
  const Option rate =
      add("--rate,--request-rate", load.rates, "requests/s with Poisson arrivals; inf: all at once")
          .separated_by(',')
          .range(0.001, std::numeric_limits<double>::infinity());
  const Option trace = add("--trace", load.trace,
                           "replay the times and lengths of a file: Azure's CSV or Mooncake's JSON lines")
                           .excludes(rate);
  add("--speedup", load.speedup, "replay the trace this many times as fast").range(1e-3, 1e6).needs(trace);
  add("--requests,--num-prompts", load.requests,
      "requests of each test; 0: four for each stream, 30 seconds of a rate, or the whole trace")
      .range(0, 1 << 24);
  add("--input-len,--random-input-len", load.input_tokens, "tokens of a prompt, about")
      .range(1, 1 << 24)
      .shows_default();
  add("--output-len,--random-output-len", load.output_tokens, "tokens of an answer")
      .range(1, 1 << 24)
      .shows_default();
  add("--shared-prefix,--random-prefix-len", load.shared_prefix, "tokens at the start that all prompts share")
      .range(0, 1 << 24);
  add("--seed", load.seed, "the same prompts and arrivals again; random unless given");
  command.after_parsing([&load, streams, options, url, engine] {
    load.limits_streams = streams.was_given();
    for (const auto& [name, option] : *options) {
      if (!option.was_given() || url.was_given() || engine.was_given()) continue;
      fail(ErrorKind::invalid_request, fmt::format("{} describes a load", name),
           {.why = "neither --serve URL nor --load says what to put it on",
            .next = "add --load for an engine in this process, or --serve http://HOST:PORT"});
    }
  });
}

void add_server_options(Command command, ServeLoadOptions& serve, Option url) {
  const auto add = [&](const char* name, auto& value, const char* help) {
    return command.option(name, value, help).group("Load on a server").needs(url);
  };
  add("--endpoint", serve.endpoint, "completions or chat").one_of({"completions", "chat"}).shows_default();
  add("--served-model-name", serve.model,
      "the model's name in requests; the server's first one unless given");
  add("--api-key", serve.key, "the server's API key; better the variable INFERNO_API_KEY");
  add("--request-timeout", serve.stall_seconds, "seconds without a byte after which a request has failed")
      .range(0.1, 1e6)
      .shows_default();
}

void run_serve(const BenchOptions& options) {
  ServeLoadOptions serve = options.serve;
  serve.load.json = options.output == "json";
  serve.load.temperature = options.sampling.temperature;
  if (!options.plot.empty()) serve.load.plot = output_path(options.plot);
  if (serve.key.empty()) serve.key = Environment::of_process().get("INFERNO_API_KEY").value_or("");
  run_serve_load(serve);
}

// Of --constrain: a tokenizer is all that is needed of the model.
void run_constrain(const BenchOptions& options) {
  constexpr std::uint64_t max_bytes = std::uint64_t{1} << 30;
  const std::string lines = read_file(options.constrain, max_bytes, Pipes::accept);
  const ModelFiles files(options.model.path);
  const auto tokenizer = files.tokenizer();
  const auto chat = files.chat_format(*tokenizer);
  constrain::Report report;
  const auto start = thread_time();
  const constrain::Settings settings = {
      .tokenizer = *tokenizer, .chat = chat.get(), .vocabulary = grammar::make_vocabulary(*tokenizer)};
  report.build_ms = std::chrono::duration<double, std::milli>(thread_time() - start).count();
  report.vocabulary = settings.vocabulary->size();
  report.model = options.model.name;
  set_origin(report);
  report.command = fmt::format("inferno bench {} --constrain {} --repeat {}", report.model, options.constrain,
                               options.repeat);
  measure_constraints(report, settings, lines, options.repeat);
  fmt::print("{}", options.output == "json" ? as_json(report).dump(2) + "\n" : as_markdown(report));
}

// Of --from: nothing is measured.
void draw_stored(const BenchOptions& options) {
  constexpr std::uint64_t max_bytes = std::uint64_t{64} << 20;
  const std::string text = read_file(options.stored, max_bytes, Pipes::accept);
  write_file(output_path(options.plot), plot_of_stored(text, options.stored));
}

void run_or_load(BenchOptions& options) {
  if (!options.stored.empty()) return draw_stored(options);
  if (!options.serve.url.empty()) return run_serve(options);
  // A shape needs a model only for its tokenizer: a default model need not be on this machine.
  const bool needs_model = options.shape.empty() || options.needs_tokenizer();
  if (needs_model && !options.model_name.empty()) {
    options.model = Catalogue(catalogue_settings(Environment::of_process())).resolve(options.model_name);
    options.model.path = folder_of_weights(options.model.path);
  }
  if (!options.weights.empty() && options.shape.empty()) {
    fail(ErrorKind::invalid_request, "--weights needs --shape: a model's files already have a format");
  }
  if (options.model.path.empty() && options.shape.empty()) {
    options.model = Catalogue(catalogue_settings(Environment::of_process())).builtin();
    say(fmt::format("model: {} (choose another with MODEL or --shape)\n", options.model.name));
  }
  if (!options.constrain.empty()) return run_constrain(options);
  if (options.loads_engine) return run_load(options);
  if (options.needs_tokenizer() && options.model.path.empty())
    fail(ErrorKind::invalid_request,
         fmt::format("--{} with --shape needs a tokenizer: -m FILE/tokenizer.json",
                     options.schema.empty() ? "harmony-mask" : "schema"));
  run(options);
}

std::string plot_problem(const std::string& file) {
  if (fs::path(file).extension() == ".svg") return "";
  return fmt::format("expected the name of an .svg file, because plots are SVG, found {}", quote(file));
}

void add_model_option(Command command, BenchOptions& options, Option model) {
  command
      .option("-m,--model", options.model_name,
              "the same as MODEL; with --constrain, --schema and --harmony-mask also a tokenizer.json")
      .excludes(model);
}

// `measured` are the options that say what to measure.
void add_plot_options(Command command, BenchOptions& options, const std::vector<Option>& measured) {
  const Option plot = command
                          .option("--plot", options.plot,
                                  "also plot throughput by batch size and decoding by depth to this SVG file")
                          .check(plot_problem);
  const Option stored =
      command
          .option("--from", options.stored,
                  "with --plot: measure nothing and draw the results in this JSON file, which -o json wrote")
          .needs(plot);
  for (const Option& other : measured) stored.excludes(other);
}

struct OtherMeasurements {
  Option url, load, constrain;
};

OtherMeasurements add_other_measurements(Command command, BenchOptions& options, Option model, Option shape) {
  const Option url = command
                         .option("--serve,--base-url", options.serve.url,
                                 "instead measure a running server with OpenAI's API, http://HOST:PORT")
                         .excludes(model)
                         .excludes(shape);
  const Option constrain =
      command
          .option("--constrain", options.constrain,
                  "instead measure compiling and masks: a file with a constraint and texts on each line")
          .excludes(shape)
          .excludes(url);
  const Option load =
      command
          .flag("--load", options.loads_engine,
                "instead measure many requests at once on the engine, in this process and without a server")
          .excludes(url)
          .excludes(constrain);
  command
      .option("--parallel,--max-num-seqs", options.parallel,
              "with --load: requests that the engine runs at once; 0: chosen")
      .range(0, 4096)
      .needs(load);
  return {url, load, constrain};
}

}  // namespace

void bench(CommandLine app) {
  const Command command = app.command("bench", "Measure how fast a model runs on this machine");
  const auto options = std::make_shared<BenchOptions>();
  options->sampling.temperature = 0.0f;
  const Option model = add_model_argument(command, options->model);
  add_model_option(command, *options, model);
  std::vector<std::string_view> names;
  for (const Shape& shape : shapes()) names.push_back(shape.name);
  const Option shape =
      command
          .option("--shape", options->shape,
                  fmt::format("a well-known model with random weights: {}", fmt::join(names, ", ")))
          .excludes(model);
  command.option("--weights", options->weights,
                 "with --shape: a weight format, or DENSE+EXPERTS (bf16+mxfp4)");
  const auto [url, load, constrain] = add_other_measurements(command, *options, model, shape);
  add_test_options(command, *options);
  command
      .option("--router-skew", options->router_skew,
              "with --shape: standard deviation of router biases; at 2 a few experts take most tokens")
      .range(0.0, 100.0)
      .needs(shape);
  add_sampling_options(command, options->sampling);
  command.flag("--profile", options->profile,
               "generate one more token after each test, for `ncu --profile-from-start off`");
  const Option engine =
      command
          .flag("--engine", options->engine,
                "measure generation through the engine too, one stream for each sequence of the batch")
          .excludes(load);
  command
      .option("--schema", options->schema,
              "with --engine: the same again with answers that follow the JSON schema in this file")
      .needs(engine);
  command
      .flag("--harmony-mask", options->harmony_mask,
            "with --engine: the same again with answers that keep to the form of Harmony")
      .needs(engine);
  command.option("-r,--repeat", options->repeat, "timed runs of each test").range(1, 1000).shows_default();
  command.option("-o,--output", options->output, "md, json or csv")
      .one_of({"md", "json", "csv"})
      .shows_default();
  add_plot_options(command, *options, {model, shape, url, constrain});
  command.flag(
      "--verbose", options->verbose,
      "print on stderr how fast the model was read, which tensors were converted and which kernels run");
  command.flag("--json", [options] { options->output = "json"; }, "the same as -o json");
  add_device_options(command, options->device);
  add_load_options(command, options->serve.load, url, load);
  add_server_options(command, options->serve, url);
  command.run([options] { run_or_load(*options); });
}

}  // namespace inferno::command
