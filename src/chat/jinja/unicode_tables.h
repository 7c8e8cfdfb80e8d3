// Tables behind unicode.h, ascending by code point. The sources are made by tools/make_unicode_tables.py.
#pragma once

#include <cstdint>
#include <span>

namespace inferno::jinja::unicode {

struct Range {
  char32_t first, last;
  std::uint32_t stride;
};
struct Shift {  // every stride-th code point of the range moves by `by`
  char32_t first, last;
  std::uint32_t stride;
  std::int32_t by;
};
struct Expansion {
  char32_t from;
  char32_t to[3];  // zero-terminated unless full
};

std::span<const Range> alpha_ranges();
std::span<const Range> upper_ranges();
std::span<const Range> lower_ranges();
std::span<const Range> title_ranges();
std::span<const Range> decimal_ranges();
std::span<const Range> digit_ranges();
std::span<const Range> numeric_ranges();
std::span<const Range> printable_ranges();

// Title case is upper case and folding is lower case, but for what their own tables hold.
std::span<const Shift> to_upper_shifts();
std::span<const Shift> to_lower_shifts();
std::span<const Shift> to_title_shifts();
std::span<const Shift> to_folded_shifts();
std::span<const Expansion> to_upper_expansions();
std::span<const Expansion> to_lower_expansions();
std::span<const Expansion> to_title_expansions();
std::span<const Expansion> to_folded_expansions();

}  // namespace inferno::jinja::unicode
