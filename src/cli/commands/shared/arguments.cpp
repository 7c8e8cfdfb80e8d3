#include "cli/commands/shared/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "cli/environment.h"
#include "cli/loading.h"

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

}  // namespace

Option add_model_argument(Command command, ResolvedModel& model, const std::string& also) {
  const std::string help = (also.empty() ? "" : also + ", ") + std::string(model_help);
  return command.option(
      "MODEL",
      [&model](const std::string& name) {
        model = Catalogue(catalogue_settings(Environment::of_process())).resolve(name);
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
}

std::unique_ptr<Backend> make_backend(const DeviceOptions& options) {
  std::unique_ptr<Backend> backend = open_device(options);
  print_device(backend->info());
  return backend;
}

void add_load_options(Command command, LoadOptions& options) {
  add_device_options(command, options.model.device);
  command
      .option("-c,--context,--ctx-size", options.model.context,
              "tokens of prompt and answer; 0: the model's maximum")
      .range(0, 1 << 30)
      .shows_default();
  command.flag("--verbose", options.verbose,
               "print on stderr how fast the model was read and which tensors were converted");
  command.flag("--deterministic", options.model.deterministic,
               "an answer does not depend on other requests; the seed is 0 unless given");
}

void add_sampling_options(Command command, SamplingSettings& settings) {
  for (const SettingName& name : sampling_setting_names()) {
    const std::string key(name.name), flags = flags_of(name), help(name.help);
    if (key == "ignore_eos") {
      command.flag(flags, [&settings] { settings.ignore_eos = true; }, help).group("Sampling");
      continue;
    }
    command
        .option(
            flags,
            [&settings, key](const std::vector<std::string>& values) {
              for (const std::string& value : values) set_sampling_text(settings, key, value);
            },
            help)
        .single_value()
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
