// Arguments and options that several commands share.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"
#include "catalogue/catalogue.h"
#include "cli/commands/shared/command_line.h"
#include "service/loading/device.h"

namespace inferno {

struct LoadOptions;
struct SamplingSettings;

inline constexpr std::string_view model_help =
    "a directory, a .gguf file, or a name: org/name[@REVISION][:QUANT], an alias, builtin";

inline constexpr std::string_view weights_file = "a .safetensors file";

// The MODEL argument, resolved by the catalogue while the command line is parsed. `also` is another kind of
// file that the command takes, for the help. A .safetensors file means its folder, unless it is
// `weights_file`.
Option add_model_argument(Command command, ResolvedModel& model, const std::string& also = "");

// --device, --threads, --quantize and --cache-type.
void add_device_options(Command command, DeviceOptions& options);

// open_device(), and a line on stderr that names the device.
std::unique_ptr<Backend> make_backend(const DeviceOptions& options);

// The options above, --context, --deterministic, --harmony-mask and --verbose.
void add_load_options(Command command, LoadOptions& options);

// One flag for each sampling setting but `except`.
void add_sampling_options(Command command, SamplingSettings& settings, std::string_view except = {});

// "1,2,3", "1 2 3" or "[1, 2, 3]". Error{invalid_request} naming `origin`, an option or a file, and the word
// that is not a token id.
std::vector<TokenId> parse_tokens(std::string_view text, const std::string& origin);

}  // namespace inferno
