// Arguments and options that several commands share.
#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"
#include "catalogue/catalogue.h"
#include "service/device.h"

namespace inferno {

struct LoadOptions;
struct SamplingSettings;

inline constexpr std::string_view model_help =
    "a directory, a .gguf file, or a name: org/name[@REVISION][:QUANT], an alias, builtin";

// The MODEL argument, resolved by the catalogue while the command line is parsed. `also` is another kind of
// file that the command takes, for the help.
CLI::Option* add_model_argument(CLI::App& command, ResolvedModel& model, const std::string& also = "");

// --device and --threads.
void add_device_options(CLI::App& command, DeviceOptions& options);

// open_device(), and a line on stderr that names the device.
std::unique_ptr<Backend> make_backend(const DeviceOptions& options);

// The options above, --context, --deterministic and --verbose.
void add_load_options(CLI::App& command, LoadOptions& options);

// One flag for each sampling setting.
void add_sampling_options(CLI::App& command, SamplingSettings& settings);

// A switch with a third state, not given: "--think,!--no-think". (CLI11 would count a std::optional.)
CLI::Option* add_switch(CLI::App& command, const std::string& names, std::optional<bool>& value,
                        const std::string& help);

// "1,2,3", "1 2 3" or "[1, 2, 3]". Error{invalid_request} naming `origin`, an option or a file, and the word
// that is not a token id.
std::vector<TokenId> parse_tokens(std::string_view text, const std::string& origin);

}  // namespace inferno
