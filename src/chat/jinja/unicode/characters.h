// Characters as Python's str sees them: templates count, cut and convert code points, while texts are UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace inferno::jinja {

struct CodePoint {
  char32_t value;
  std::size_t bytes;
};

// These expect valid UTF-8.
CodePoint code_point_at(std::string_view text, std::size_t offset);
CodePoint code_point_before(std::string_view text, std::size_t offset);
std::size_t code_point_count(std::string_view text);
// Byte offset of the index-th code point; the size of the text if it has fewer.
std::size_t offset_of(std::string_view text, std::size_t index);

bool is_space(char32_t value);  // str.isspace, which is also what strip() and \s mean
bool is_alpha(char32_t value);
bool is_decimal(char32_t value);    // str.isdecimal: what int() accepts
int decimal_value(char32_t value);  // 0 to 9; the character must be decimal
bool is_digit(char32_t value);      // str.isdigit
bool is_numeric(char32_t value);    // str.isnumeric
bool is_alnum(char32_t value);
bool is_upper(char32_t value);
bool is_lower(char32_t value);
bool is_title(char32_t value);
bool is_printable(char32_t value);  // str.isprintable: repr() does not escape it

// Full case mappings: one character may become up to three.
void append_upper(std::string& out, char32_t value);
void append_lower(std::string& out, char32_t value);
void append_title(std::string& out, char32_t value);
void append_folded(std::string& out, char32_t value);

}  // namespace inferno::jinja
