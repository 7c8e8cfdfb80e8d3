// Numbers as Python reads and writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace inferno::jinja {

// repr(float): the shortest digits that read back the same, "1.0", "1e+16", "inf", "nan".
std::string format_float(double value);

// float(text): nullopt where Python raises ValueError. Underscores between digits, "inf" and "nan" count.
std::optional<double> parse_float(std::string_view text);

// int(text, base): nullopt where Python raises ValueError. `overflowed` says that the number is one, but
// beyond 64 bits.
std::optional<std::int64_t> parse_int(std::string_view text, int base, bool& overflowed);

// A decimal number without signs or spaces; too large is infinity, too small is zero.
double parse_decimal(std::string_view digits);

}  // namespace inferno::jinja
