#include "cli/commands/shared/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "cli/environment.h"
#include "cli/loading.h"
#include "model/export/weight_types.h"

namespace inferno {
namespace {

constexpr std::array short_flags = {std::pair{std::string_view("max_tokens"), std::string_view("-n")},
                                    std::pair{std::string_view("seed"), std::string_view("-s")},
                                    std::pair{std::string_view("stop"), std::string_view("-r")}};

// "-n,--max-tokens,--n-predict"
std::string flags_of(const SettingName& name) {
  std::string flags;
  for (const auto& [setting, flag] : short_flags) {
    if (setting == name.name) flags += std::string(flag) + ",";
  }
  flags += "--" + std::string(name.name);
  for (const std::string_view alias : name.aliases) flags += ",--" + std::string(alias);
  std::ranges::replace(flags, '_', '-');
  return flags;
}

// "-n, --max-tokens": the names that a message shows.
std::string label_of(const std::string& flags) {
  const std::size_t long_name = flags.find("--"), end = std::min(flags.find(',', long_name), flags.size());
  return (long_name == 0 ? "" : flags.substr(0, long_name - 1) + ", ") +
         flags.substr(long_name, end - long_name);
}

std::string value_name_of(std::string_view setting) {
  if (setting == "stop") return "TEXT";
  if (setting == "logit_bias") return "TOKEN=BIAS";
  return setting == "stop_token_ids" ? "TOKEN" : "N";
}

// Errors name the flag, not the field of a request.
void set_from_flag(SamplingSettings& settings, const std::string& key, const std::string& value,
                   const std::string& flag) {
  try {
    set_sampling_text(settings, key, value);
  } catch (const Error& error) {
    const std::string what = error.what();
    if (!what.starts_with(key)) throw;
    throw Error(error.kind(), flag + what.substr(key.size()), error.advice());
  }
}

// Callbacks run in the order of declaration, so the types of keys and values win over the common one.
void add_cache_options(Command command, CacheChoice& cache) {
  command.option(
      "--cache-type,--kv-cache-dtype",
      [&cache](const std::string& text) { cache = parse_cache_choice(text, "--cache-type"); },
      "the KV cache's type: auto, f32, f16, bf16, q8_0 or fp8, or KEYS,VALUES; auto: f32 on a CPU, as "
      "activations on a GPU");
  const auto add = [&](const char* names, std::optional<DType>& type, const char* what) {
    const std::string origin = std::string(names).substr(0, std::string_view(names).find(','));
    command.option(
        names, [&type, origin](const std::string& word) { type = parse_cache_type(word, origin); },
        fmt::format("the type of {} alone", what));
  };
  add("--cache-type-k,--ctk", cache.keys, "keys");
  add("--cache-type-v,--ctv", cache.values, "values");
}

}  // namespace

Option add_model_argument(Command command, ResolvedModel& model, const std::string& also) {
  const std::string help = (also.empty() ? "" : also + ", ") + std::string(model_help);
  return command.option(
      "MODEL",
      [&model, takes_weights = also == weights_file](const std::string& name) {
        model = Catalogue(catalogue_settings(Environment::of_process())).resolve(name);
        if (!takes_weights) model.path = folder_of_weights(model.path);
      },
      help);
}

void add_device_options(Command command, DeviceOptions& options) {
  command.option("--device", options.device, "auto, cpu, cuda or cuda:N").shows_default();
  command
      .option("--threads", options.threads,
              "CPU threads, or with a GPU the threads that read weights; 0: one per usable core")
      .range(0, 1024)
      .shows_default();
  command.option(
      "--quantize",
      [&options](const std::string& type) {
        parse_quantize(type);  // throws
        options.quantize = type;
      },
      "round float weights while loading to q8_0, q6_k, q4_k or q4_0, with the rules of convert");
  add_cache_options(command, options.cache);
}

std::unique_ptr<Backend> make_backend(const DeviceOptions& options) {
  std::unique_ptr<Backend> backend = open_device(options);
  print_device(backend->info());
  return backend;
}

void add_load_options(Command command, LoadOptions& options) {
  add_device_options(command, options.model.device);
  command
      .option("-c,--context,--ctx-size,--max-model-len", options.model.context,
              "tokens of prompt and answer; 0: the model's maximum")
      .range(0, 1 << 30)
      .shows_default();
  command.flag("--verbose", options.verbose,
               "print on stderr how fast the model was read and which tensors were converted");
  command.flag("--harmony-mask,!--no-harmony-mask", options.model.harmony_mask,
               "replies of gpt-oss cannot violate Harmony's form, nor calls their schemas; the default");
  command.flag("--deterministic", options.model.deterministic,
               "an answer does not depend on other requests; the seed is 0 unless given");
}

void add_sampling_options(Command command, SamplingSettings& settings, std::string_view except) {
  for (const SettingName& name : sampling_setting_names()) {
    if (name.name == except) continue;
    const std::string key(name.name), flags = flags_of(name), help(name.help);
    if (key == "ignore_eos") {
      command.flag(flags, [&settings] { settings.ignore_eos = true; }, help).group("Sampling");
      continue;
    }
    command
        .option(
            flags,
            [&settings, key, flag = label_of(flags)](const std::vector<std::string>& values) {
              for (const std::string& value : values) set_from_flag(settings, key, value, flag);
            },
            help)
        .single_value()
        .value_name(value_name_of(key))
        .group("Sampling");
  }
}

std::vector<TokenId> parse_tokens(std::string_view text, const std::string& origin) {
  constexpr std::string_view separators = ", \t\r\n[]";
  std::vector<TokenId> tokens;
  for (std::size_t at = text.find_first_not_of(separators); at != std::string_view::npos;
       at = text.find_first_not_of(separators, at)) {
    const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    TokenId token = 0;
    const auto [stop, problem] = std::from_chars(word.data(), word.data() + word.size(), token);
    if (problem != std::errc() || stop != word.data() + word.size() || token < 0) {
      fail(ErrorKind::invalid_request,
           fmt::format("{}: expected token ids separated by commas or spaces, found \"{}\"", origin,
                       word.substr(0, 40)));
    }
    tokens.push_back(token);
    at = end;
  }
  return tokens;
}

}  // namespace inferno
