// Reads config.json and generation_config.json. The files are untrusted: their size, depth and number of
// values are bounded, and a repeated key is refused.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "checkpoint/config.h"

namespace inferno {

// Errors name `origin`: Error{unsupported} if the text is too large, as for a file that is; Error{corrupt} if
// it is not a valid JSON object within the other bounds.
Config parse_config(std::string_view json, std::string origin);

// Error{not_found} if the file does not exist.
Config read_config(const std::filesystem::path& path);

}  // namespace inferno
