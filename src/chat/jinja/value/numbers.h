// Numbers as Python reads and prints them, and as a template's source spells them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace inferno::jinja {

// repr(float): the shortest digits that read back the same, "1.0", "1e+16", "inf", "nan".
std::string format_float(double value);

// float(text): nullopt if Python raises ValueError. Underscores between digits, "inf" and "nan" are accepted.
std::optional<double> parse_float(std::string_view text);

// int(text, base): nullopt if Python raises ValueError. `overflowed` is set for a valid number beyond 64
// bits.
std::optional<std::int64_t> parse_int(std::string_view text, int base, bool& overflowed);

struct NumberSpelling {
  std::size_t bytes;
  bool floating;
};
// The longest number literal at the start of `text`, which must begin with a digit.
NumberSpelling scan_number(std::string_view text, bool integer_only);
// nullopt if the number does not fit into 64 bits.
std::optional<std::int64_t> parse_integer_literal(std::string_view spelling);
double parse_float_literal(std::string_view spelling);

// 0 to 15, or 99 for a character that is not a hexadecimal digit.
int digit_value(char letter);

}  // namespace inferno::jinja
