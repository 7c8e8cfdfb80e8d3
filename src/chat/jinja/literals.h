// How numbers and strings are written in a template's source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace inferno::jinja {

struct NumberSpelling {
  std::size_t bytes;
  bool floating;
};

// The longest number at the start of `text`, which must begin with a digit.
NumberSpelling scan_number(std::string_view text, bool integer_only);

// nullopt when the number does not fit 64 bits.
std::optional<std::int64_t> parse_integer_literal(std::string_view spelling);
double parse_float_literal(std::string_view spelling);

// Appends what Python's "unicode-escape" makes of the text between the quotes. Returns what is wrong with
// it, or nullptr.
const char* decode_escapes(std::string& out, std::string_view text);

}  // namespace inferno::jinja
