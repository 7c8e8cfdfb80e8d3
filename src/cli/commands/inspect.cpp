// `inferno inspect`: what a model's files contain and how much memory it needs, without reading weights.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/sizes.h"
#include "base/utf8.h"
#include "chat/json.h"
#include "cli/commands/shared/arguments.h"
#include "cli/commands/shared/command_line.h"
#include "cli/commands/shared/describe_spec.h"
#include "cli/terminal/screen.h"
#include "cli/terminal/streams.h"
#include "model/footprint.h"
#include "model/tensor_plan.h"
#include "service/loading/model_files.h"

namespace inferno::command {
namespace {

struct InspectOptions {
  ResolvedModel model;
  bool json = false;
  bool tensors = false;  // everything, one line each
};

std::uint64_t sum(const Json& tensors, const char* key) {
  std::uint64_t total = 0;
  for (const Json& tensor : tensors) total += tensor[key].get<std::uint64_t>();
  return total;
}

void print_config(const Json& config) {
  fmt::print("\nconfiguration\n");
  for (const auto& [key, value] : config.items()) {
    std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (text.size() > 100) text = text.substr(0, 97) + "...";
    fmt::print("  {:<44} {}\n", printable(key), text);
  }
}

std::map<std::string, std::uint64_t> bytes_by_format(const Json& tensors) {
  std::map<std::string, std::uint64_t> bytes;
  for (const Json& tensor : tensors)
    bytes[tensor["format"].get<std::string>()] += tensor["bytes"].get<std::uint64_t>();
  return bytes;
}

void print_tensors(const Json& tensors) {
  fmt::print("\n{} tensors\n", tensors.size());
  for (const Json& tensor : tensors) {
    fmt::print("  {:<56} {:>8} {:>10}  [{}]\n", printable(tensor["name"].get<std::string>()),
               tensor["format"].get<std::string>(), human_size(tensor["bytes"].get<std::uint64_t>()),
               fmt::join(tensor["shape"].get<std::vector<std::int64_t>>(), ", "));
  }
  for (const auto& [format, total] : bytes_by_format(tensors))
    fmt::print("  all {:<8} {:>10}\n", format, human_size(total));
}

// "139 tensors: bf16 6.4 MB, mxfp4 5.0 MB"
void print_formats(const Json& tensors) {
  std::vector<std::string> formats;
  for (const auto& [format, total] : bytes_by_format(tensors))
    formats.push_back(fmt::format("{} {}", format, human_size(total)));
  fmt::print("{}: {}\n", counted(tensors.size(), "tensor"), fmt::join(formats, ", "));
}

void print_notes(const std::vector<std::string>& notes, bool prints_all) {
  constexpr std::size_t most = 2;
  const std::size_t count = prints_all || notes.size() <= most ? notes.size() : most - 1;
  for (const std::string& note : std::span(notes).first(count)) fmt::print("note: {}\n", note);
  if (count < notes.size())
    fmt::print("note: {} with --tensors\n", counted(notes.size() - count, "more note"));
}

void print_layers(const Json& spec) {
  fmt::print("\ndecoder\n");
  for (const auto& [key, value] : spec.items()) {
    if (key != "blocks") fmt::print("  {:<20} {}\n", key, value.dump());
  }
  for (const Json& block : spec["blocks"]) {
    const bool one = block["first"] == block["last"];
    fmt::print("  {}\n", one ? fmt::format("layer {}", block["first"].dump())
                             : fmt::format("layers {} to {}", block["first"].dump(), block["last"].dump()));
    for (const auto& [key, value] : block.items()) {
      if (key != "first" && key != "last") fmt::print("    {:<18} {}\n", key, value.dump());
    }
  }
}

// The sizes that people compare; --tensors shows the rest.
void print_summary(const Json& spec) {
  fmt::print("\ndecoder\n");
  for (const auto& [key, value] : spec.items()) {
    if (value.is_number_integer()) fmt::print("  {:<20} {}\n", key, value.dump());
  }
}

void print_memory(const Json& memory) {
  const auto bytes = [](const Json& value) { return human_size(value.get<std::uint64_t>()); };
  fmt::print("\nmemory on the CPU (f32 activations and cache)\n");
  fmt::print("  {:<24} {:>10}\n", "weights", bytes(memory["weights"]));
  for (const Json& cache : memory["cache"]) {
    const int window = cache["window"];
    fmt::print(
        "  {:<24} {:>10}  {}\n", "cache per token", bytes(cache["bytes_per_token"]),
        window == 0 ? "layers with full attention" : fmt::format("layers with a window of {}", window));
  }
  fmt::print("  {:<24} {:>10}\n", "cache, full context", bytes(memory["cache_at_full_context"]));
  fmt::print("  {:<24} {:>10}  steps of 512 tokens\n", "workspace", bytes(memory["workspace"]));
  fmt::print("  {:<24} {:>10}\n", "total, full context", bytes(memory["total_at_full_context"]));
}

// On the CPU, whose activations and cache are f32.
Json memory_of(const ModelSpec& spec, const TensorPlan& tensors) {
  const auto backend = make_cpu_backend(0);
  return describe_memory(model_footprint(spec, tensors, device_memory(*backend), {.max_tokens = 512}));
}

Json gather(const Checkpoint& checkpoint) {
  const ModelDescription plan = describe_model(checkpoint);
  const TensorPlan planned = plan_tensors(plan.spec, *plan.architecture, checkpoint);
  require_complete(planned, checkpoint);
  const Json tensors = describe_tensors(checkpoint);
  return {{"architecture", checkpoint.architecture()},
          {"container", checkpoint.container() == Container::gguf ? "gguf" : "safetensors"},
          {"quantization", checkpoint.quantization()},
          {"parameters", sum(tensors, "elements")},
          {"bytes", sum(tensors, "bytes")},
          {"spec", describe_spec(plan.spec)},
          {"memory", memory_of(plan.spec, planned)},
          {"notes", plan.notes},
          {"config", describe_config(checkpoint.config())},
          {"tensors", tensors}};
}

void run(const InspectOptions& options) {
  const auto checkpoint = ModelFiles(options.model.path).checkpoint();
  if (options.json) {
    fmt::print("{}\n", gather(*checkpoint).dump(2, ' ', false, Json::error_handler_t::replace));
    return;
  }
  const Json tensors = describe_tensors(*checkpoint);
  const std::string quantization = checkpoint->quantization();
  fmt::print("{} ({}{}{})  {} parameters, {}\n", printable(checkpoint->architecture()),
             checkpoint->container() == Container::gguf ? "GGUF" : "safetensors",
             quantization.empty() ? "" : ", ", printable(quantization), human_count(sum(tensors, "elements")),
             human_size(sum(tensors, "bytes")));
  if (options.tensors) print_config(describe_config(checkpoint->config()));
  (options.tensors ? print_tensors : print_formats)(tensors);
  // The contents are shown even if the model cannot run, because that is when they are needed.
  std::fflush(stdout);
  const ModelDescription plan = describe_model(*checkpoint);
  (options.tensors ? print_layers : print_summary)(describe_spec(plan.spec));
  const TensorPlan planned = plan_tensors(plan.spec, *plan.architecture, *checkpoint);
  if (planned.problems.empty()) print_memory(memory_of(plan.spec, planned));
  print_notes(plan.notes, options.tensors);
  std::fflush(stdout);
  if (!options.tensors && terminal::is_terminal(STDOUT_FILENO))
    say("--tensors shows every tensor, hyperparameter and layer\n");
  require_complete(planned, *checkpoint);
}

}  // namespace

void inspect(CommandLine app) {
  const Command command =
      app.command("inspect", "Show the architecture and size of a model and the memory it needs", {"show"});
  const auto options = std::make_shared<InspectOptions>();
  add_model_argument(command, options->model, std::string(weights_file)).required();
  command.flag("--tensors", options->tensors, "also every hyperparameter, tensor and layer");
  command.flag("--json", options->json, "print everything as JSON");
  command.run([options] { run(*options); });
}

}  // namespace inferno::command
