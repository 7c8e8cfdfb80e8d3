// `inferno plan`: whether a model runs here, how, and how fast, before a byte of its weights is downloaded.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/sizes.h"
#include "base/utf8.h"
#include "catalogue/remote_headers.h"
#include "chat/json.h"
#include "checkpoint/open_checkpoint.h"
#include "cli/commands/shared/arguments.h"
#include "cli/commands/shared/command_line.h"
#include "cli/doctor/expected_speed.h"
#include "cli/download/display.h"
#include "cli/download/interruptible.h"
#include "cli/environment.h"
#include "model/export/weight_types.h"
#include "model/footprint.h"
#include "service/loading/plan_model.h"

namespace inferno::command {
namespace {

struct PlanOptions {
  std::string model;
  int context = 0;  // 0: the model's own
  int batch = 1;    // sequences at once
  DeviceOptions device;
  bool json = false;
};

// The headers, from this machine or from the hub.
struct PlanSource {
  std::string name;
  std::filesystem::path path;
  std::optional<RemoteModel> remote = {};
};

PlanSource find_source(const std::string& name, const Environment& environment) {
  const Catalogue catalogue(catalogue_settings(environment));
  const ModelMatch match = catalogue.look_up(name);
  const hub::HubSettings settings = hub_settings(environment);
  if (match.is_complete() || !match.download || settings.is_offline()) {
    ResolvedModel model = catalogue.resolve(name);
    return {std::move(model.name), std::move(model.path)};
  }
  hub::HubClient client(settings, [] { return SignalWatcher::received() != 0; });
  RemoteModel remote;
  {
    const SignalWatcher signals(stop_signals);
    const std::filesystem::path temporary = environment.temporary_folder();
    WaitNotice waits;
    run_interruptibly([&] { remote = fetch_headers(client, *match.download, temporary); },
                      [&] { waits.show(client.gate()->pause()); }, [] {});
  }
  std::filesystem::path path = remote.path;
  hub::ModelName full = *match.download;
  if (full.quant.empty() && remote.selection.format == hub::ModelFormat::gguf) {
    full.quant = remote.selection.quant;
  }
  return {full.text(), std::move(path), std::move(remote)};
}

int usable_context(const Footprint& plan) {
  return std::min(plan.context, plan.max_context);
}

// Other versions of the model that fit, best first.
std::vector<std::string> smaller_versions(const PlanSource& source, const Footprint& plan) {
  std::vector<std::string> fitting;
  if (!source.remote) return fitting;
  std::vector<std::pair<std::uint64_t, std::string>> sizes;
  for (const auto& parts : hub::gguf_models(source.remote->listing)) {
    std::uint64_t bytes = 0;
    for (const hub::HubFile& part : parts) bytes += part.size;
    const std::string quant = hub::select_files(parts).quant;
    if (!quant.empty() && bytes + plan.workspace < plan.available) sizes.emplace_back(bytes, quant);
  }
  std::sort(sizes.rbegin(), sizes.rend());
  for (const auto& [bytes, quant] : sizes) {
    fitting.push_back(fmt::format("{}:{} ({})", source.remote->info.id, quant, human_size(bytes)));
    if (fitting.size() == 3) break;
  }
  return fitting;
}

std::string advice(const PlanSource& source, const Footprint& plan) {
  if (plan.runs()) {
    std::string commands = source.remote ? fmt::format("inferno download {}\n", source.name) : "";
    const bool is_reduced = usable_context(plan) < plan.model_context;
    commands += fmt::format("inferno play {}{}", source.name,
                            is_reduced ? fmt::format(" --context {}", usable_context(plan)) : "");
    return commands;
  }
  const std::vector<std::string> smaller = smaller_versions(source, plan);
  if (!smaller.empty()) return fmt::format("a smaller version: {}", fmt::join(smaller, ", "));
  const auto quantized = static_cast<std::uint64_t>(static_cast<double>(plan.weights.parameters) * 4.5 / 8);
  if (quantized + plan.workspace < plan.available) {
    return fmt::format("a smaller version: q4_k needs about {} (inferno search NAME --format gguf)",
                       human_size(quantized));
  }
  return "a machine with more memory, or a smaller model: inferno search --fits";
}

Json as_json(const PlanSource& source, const Footprint& plan, const DeviceInfo& device, double bandwidth) {
  const auto speed = [&](int depth) { return expected_speed(device, bandwidth, plan.read_per_token(depth)); };
  Json json = {{"model", source.name},
               {"remote", source.remote.has_value()},
               {"parameters", plan.weights.parameters},
               {"weights", plan.weights.bytes},
               {"cache", plan.cache},
               {"cache_type", name_of(plan.cache_types)},
               {"cache_bytes_per_token", plan.cache_token_bytes()},
               {"workspace", plan.workspace},
               {"total", plan.total()},
               {"context", plan.context},
               {"batch", plan.sequences},
               {"model_context", plan.model_context},
               {"max_context", plan.max_context},
               {"fits", plan.fits()},
               {"device", device.name},
               {"available", plan.available},
               {"bandwidth", bandwidth},
               {"read_per_token", plan.read_per_token(0)},
               {"tokens_per_second", speed(0)},
               {"tokens_per_second_at_context", speed(usable_context(plan))}};
  if (source.remote) {
    json["commit"] = source.remote->info.commit;
    json["download_bytes"] = source.remote->selection.bytes();
    json["fetched"] = source.remote->fetched;
  }
  return json;
}

void print_page(const PlanSource& source, const Footprint& plan, const Json& facts) {
  if (source.remote) {
    fmt::print("{} at {}: {} to download; read {} of headers\n", printable(source.name),
               source.remote->info.commit.substr(0, 12), human_size(source.remote->selection.bytes()),
               human_size(source.remote->fetched));
  } else {
    fmt::print("{}\n", printable(source.name));
  }
  const auto line = [](std::string_view what, const std::string& size, const std::string& more) {
    fmt::print("{:<11}{:>12}{}{}\n", what, size, more.empty() ? "" : "  ", more);
  };
  line("weights", human_size(plan.weights.bytes),
       fmt::format("{} parameters", human_count(plan.weights.parameters)));
  line("cache", human_size(plan.cache),
       fmt::format("context of {} tokens, {}; {}, {} bytes a token", plan.context,
                   counted(static_cast<std::uint64_t>(plan.sequences), "sequence"), name_of(plan.cache_types),
                   plan.cache_token_bytes()));
  line("workspace", human_size(plan.workspace), "");
  line("total", human_size(plan.total()),
       fmt::format("{} has {} free", printable(facts["device"].get<std::string>()),
                   human_size(plan.available)));
  if (!plan.runs()) {
    line("fits", "no",
         fmt::format("the weights and one block of the KV cache need more than the free {}",
                     human_size(plan.available)));
  } else if (!plan.fits()) {
    line("fits", "partly", fmt::format("with a context of {} of {} tokens", plan.max_context, plan.context));
  } else {
    line("fits", "yes",
         plan.context < plan.model_context ? fmt::format("up to a context of {}", plan.max_context)
                                           : "with the full context");
  }
  if (plan.runs()) {
    line("speed", fmt::format("{:.0f} tok/s", facts["tokens_per_second"].get<double>()),
         fmt::format("expected for one sequence, {:.0f} with a full cache: {} read per token, {:.1f} GB/s "
                     "measured",
                     facts["tokens_per_second_at_context"].get<double>(), human_size(plan.read_per_token(0)),
                     facts["bandwidth"].get<double>() / 1e9));
  }
  fmt::print("next:\n{}\n", printable(advice(source, plan)));
}

// Errors about headers that were fetched name the model, not the temporary folder that holds them.
[[noreturn]] void rethrow_without(const std::string& folder, const std::string& name, const Error& error) {
  const auto renamed = [&](std::string text) {
    for (std::size_t at = text.find(folder); at != std::string::npos;
         at = text.find(folder, at + name.size()))
      text.replace(at, folder.size(), name);
    return text;
  };
  throw Error(error.kind(), renamed(error.what()),
              {.why = renamed(error.advice().why), .next = renamed(error.advice().next)});
}

void print_plan(const PlanOptions& options, const PlanSource& source) {
  const auto checkpoint = open_checkpoint(source.path);
  const auto backend = make_backend(options.device);
  const Footprint plan = plan_model(*checkpoint, *backend,
                                    {.context = options.context,
                                     .sequences = options.batch,
                                     .quantize = parse_quantize(options.device.quantize),
                                     .cache = options.device.cache});
  const Json facts = as_json(source, plan, backend->info(), bandwidth_of(*backend));
  if (options.json) {
    fmt::print("{}\n", facts.dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    print_page(source, plan, facts);
  }
}

void run(const PlanOptions& options) {
  const PlanSource source = find_source(options.model, Environment::of_process());
  try {
    print_plan(options, source);
  } catch (const Error& error) {
    if (!source.remote) throw;
    rethrow_without(source.path.string(), source.name, error);
  }
}

}  // namespace

void plan(CommandLine app) {
  const Command command = app.command(
      "plan", "Show whether and how fast a model would run on this machine, before downloading it");
  const auto options = std::make_shared<PlanOptions>();
  command.option("MODEL", options->model, std::string(model_help)).required();
  command.option("-c,--context", options->context, "tokens of prompt and answer; 0: the model's maximum")
      .range(0, 1 << 30)
      .shows_default();
  command.option("-b,--batch", options->batch, "concurrent sequences").range(1, 512).shows_default();
  add_device_options(command, options->device);
  command.flag("--json", options->json, "print JSON");
  command.run([options] { run(*options); });
}

}  // namespace inferno::command
