#include "chat/jinja/unicode/characters.h"

#include <algorithm>
#include <span>

#include "base/utf8.h"
#include "chat/jinja/unicode/tables.h"

namespace inferno::jinja {
namespace {

template <class Row>
const Row* find_row(std::span<const Row> table, char32_t value) {
  const auto after = std::upper_bound(table.begin(), table.end(), value,
                                      [](char32_t wanted, const Row& row) { return wanted < row.first; });
  if (after == table.begin()) return nullptr;
  const Row& row = *(after - 1);
  return value <= row.last && (value - row.first) % row.stride == 0 ? &row : nullptr;
}

bool is_in(std::span<const unicode::Range> table, char32_t value) {
  return find_row(table, value) != nullptr;
}

// False if the tables do not contain the character.
bool append_mapped(std::string& out, char32_t value, std::span<const unicode::Shift> shifts,
                   std::span<const unicode::Expansion> expansions) {
  if (const auto* shift = find_row(shifts, value)) {
    utf8::append(out, static_cast<char32_t>(static_cast<std::int32_t>(value) + shift->by));
    return true;
  }
  const auto found =
      std::lower_bound(expansions.begin(), expansions.end(), value,
                       [](const unicode::Expansion& row, char32_t wanted) { return row.from < wanted; });
  if (found == expansions.end() || found->from != value) return false;
  for (const char32_t part : found->to) {
    if (part != 0) utf8::append(out, part);
  }
  return true;
}

}  // namespace

CodePoint code_point_at(std::string_view text, std::size_t offset) {
  const auto [code, length] = utf8::decode(text, offset);
  return {code, length == 0 ? 1 : static_cast<std::size_t>(length)};
}

CodePoint code_point_before(std::string_view text, std::size_t offset) {
  const std::size_t start = utf8::previous(text, offset);
  return {code_point_at(text.substr(0, offset), start).value, offset - start};
}

std::size_t code_point_count(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !utf8::is_continuation(byte); }));
}

std::size_t offset_of(std::string_view text, std::size_t index) {
  std::size_t at = 0;
  for (; index > 0 && at < text.size(); --index) at += utf8::length_from_first_byte(text[at]);
  return at;
}

bool is_space(char32_t value) {
  if (value < 0x80)
    return value == 0x20 || (value >= 0x09 && value <= 0x0D) || (value >= 0x1C && value <= 0x1F);
  return value == 0x85 || value == 0xA0 || value == 0x1680 || (value >= 0x2000 && value <= 0x200A) ||
         value == 0x2028 || value == 0x2029 || value == 0x202F || value == 0x205F || value == 0x3000;
}

bool is_alpha(char32_t value) {
  return is_in(unicode::alpha_ranges, value);
}
bool is_decimal(char32_t value) {
  return is_in(unicode::decimal_ranges, value);
}
int decimal_value(char32_t value) {
  // Unicode encodes the ten digits of a script consecutively, so every range begins with a zero.
  const auto* row = find_row(std::span<const unicode::Range>(unicode::decimal_ranges), value);
  return row == nullptr ? 0 : static_cast<int>((value - row->first) % 10);
}
bool is_digit(char32_t value) {
  return is_in(unicode::digit_ranges, value);
}
bool is_numeric(char32_t value) {
  return is_in(unicode::numeric_ranges, value);
}
bool is_alnum(char32_t value) {
  return is_alpha(value) || is_numeric(value);
}
bool is_upper(char32_t value) {
  return is_in(unicode::upper_ranges, value);
}
bool is_lower(char32_t value) {
  return is_in(unicode::lower_ranges, value);
}
bool is_title(char32_t value) {
  return is_in(unicode::title_ranges, value);
}
bool is_printable(char32_t value) {
  if (value < 0x7F) return value >= 0x20;
  return is_in(unicode::printable_ranges, value);
}

void append_upper(std::string& out, char32_t value) {
  if (value < 0x80) {
    out += static_cast<char>(value >= U'a' && value <= U'z' ? value - 32 : value);
  } else if (!append_mapped(out, value, unicode::to_upper_shifts, unicode::to_upper_expansions)) {
    utf8::append(out, value);
  }
}

void append_lower(std::string& out, char32_t value) {
  if (value < 0x80) {
    out += static_cast<char>(value >= U'A' && value <= U'Z' ? value + 32 : value);
  } else if (!append_mapped(out, value, unicode::to_lower_shifts, unicode::to_lower_expansions)) {
    utf8::append(out, value);
  }
}

void append_title(std::string& out, char32_t value) {
  if (!append_mapped(out, value, unicode::to_title_shifts, unicode::to_title_expansions)) {
    append_upper(out, value);
  }
}

void append_folded(std::string& out, char32_t value) {
  if (!append_mapped(out, value, unicode::to_folded_shifts, unicode::to_folded_expansions)) {
    append_lower(out, value);
  }
}

}  // namespace inferno::jinja
