// A small text file read whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace inferno {

// Error{not_found} or Error{io} as open_file(); Error{corrupt} when the file is larger than `limit`.
std::string read_text(const std::filesystem::path& path, std::uint64_t limit);

}  // namespace inferno
