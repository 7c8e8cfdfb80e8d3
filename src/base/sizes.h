// Human-readable sizes and counts. One format everywhere, so that the figures of two commands can be
// compared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace inferno {

// "96 B", "1.2 MB", "13.8 GB": powers of a thousand, as disks and downloads are counted.
std::string human_size(std::uint64_t bytes);

// "4800M", "1.5G", "2GiB" in powers of 1024, "8g", "8GB" in powers of a thousand, or a number of bytes; as
// vLLM reads them. nullopt for any other text.
std::optional<std::uint64_t> parse_size(std::string_view text);

// "512", "1.24 M", "20.91 B": parameters and other large numbers.
std::string human_count(std::uint64_t count);

// "1,214": an exact number for people.
std::string grouped(std::uint64_t number);

// "1 file", "2 files".
std::string counted(std::uint64_t count, std::string_view noun);

}  // namespace inferno
