// config.json and generation_config.json as a Config. The file is untrusted: its size, depth and number of
// values are bounded, and a key given twice is refused.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "checkpoint/config.h"

namespace inferno {

// Error{corrupt} naming `origin` when the text is not a JSON object that a Config can hold.
Config parse_config(std::string_view json, std::string origin);

// Error{not_found} when there is no such file.
Config read_config(const std::filesystem::path& path);

}  // namespace inferno
