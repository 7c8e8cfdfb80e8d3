// Human-readable sizes and counts. One format everywhere, so that the figures of two commands can be
// compared.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace inferno {

// "96 B", "1.2 MB", "13.8 GB": powers of a thousand, as disks and downloads are counted.
std::string human_size(std::uint64_t bytes);

// "512", "1.24 M", "20.91 B": parameters and other large numbers.
std::string human_count(std::uint64_t count);

// "1 file", "2 files".
std::string counted(std::uint64_t count, std::string_view noun);

}  // namespace inferno
