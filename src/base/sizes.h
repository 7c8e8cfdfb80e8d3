// Sizes for people. One format everywhere, so that the figures of two commands can be compared.
#pragma once

#include <cstdint>
#include <string>

namespace inferno {

// "96 B", "1.2 MB", "13.8 GB": powers of a thousand, as disks and downloads are counted.
std::string human_size(std::uint64_t bytes);

}  // namespace inferno
