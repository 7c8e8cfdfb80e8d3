// `inferno inspect`: what a model's files contain and how much memory it needs, without reading weights.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "base/error.h"
#include "base/sizes.h"
#include "base/utf8.h"
#include "chat/json.h"
#include "cli/commands/shared/arguments.h"
#include "cli/commands/shared/command_line.h"
#include "cli/commands/shared/describe_spec.h"
#include "model/footprint.h"
#include "model/tensor_plan.h"
#include "service/model_files.h"

namespace inferno::command {
namespace {

struct InspectOptions {
  ResolvedModel model;
  bool json = false;
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

void print_tensors(const Json& tensors) {
  fmt::print("\n{} tensors\n", tensors.size());
  std::map<std::string, std::uint64_t> bytes;
  for (const Json& tensor : tensors) {
    const std::string format = tensor["format"];
    fmt::print("  {:<56} {:>8} {:>10}  [{}]\n", printable(tensor["name"].get<std::string>()), format,
               human_size(tensor["bytes"].get<std::uint64_t>()),
               fmt::join(tensor["shape"].get<std::vector<std::int64_t>>(), ", "));
    bytes[format] += tensor["bytes"].get<std::uint64_t>();
  }
  for (const auto& [format, total] : bytes) {
    fmt::print("  all {:<8} {:>10}\n", format, human_size(total));
  }
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
  fmt::print("{} ({})  {} parameters, {}\n", printable(checkpoint->architecture()),
             checkpoint->container() == Container::gguf ? "GGUF" : "safetensors",
             human_count(sum(tensors, "elements")), human_size(sum(tensors, "bytes")));
  print_config(describe_config(checkpoint->config()));
  print_tensors(tensors);
  // The contents are shown even if the model cannot run, because that is when they are needed.
  std::fflush(stdout);
  const ModelDescription plan = describe_model(*checkpoint);
  print_layers(describe_spec(plan.spec));
  const TensorPlan planned = plan_tensors(plan.spec, *plan.architecture, *checkpoint);
  if (planned.problems.empty()) print_memory(memory_of(plan.spec, planned));
  for (const std::string& note : plan.notes) fmt::print("note: {}\n", note);
  std::fflush(stdout);
  require_complete(planned, *checkpoint);
}

}  // namespace

void inspect(CommandLine app) {
  const Command command =
      app.command("inspect", "Show the architecture and tensors of a model and the memory it needs");
  const auto options = std::make_shared<InspectOptions>();
  add_model_argument(command, options->model).required();
  command.flag("--json", options->json, "print JSON");
  command.run([options] { run(*options); });
}

}  // namespace inferno::command
