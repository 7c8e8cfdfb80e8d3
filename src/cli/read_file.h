// A file of the user's, whole.
#pragma once

#include <filesystem>
#include <string>

namespace inferno {

// Error{not_found}, Error{io}, or Error{invalid_request} when it is larger than `most` bytes.
std::string read_file(const std::filesystem::path& path, std::uint64_t most);

}  // namespace inferno
