#include "grammar/automaton/characters.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/utf8.h"

namespace inferno::grammar {
namespace {

constexpr CodeRange surrogates = {0xD800, 0xDFFF};

// Both ends must have the same number of bytes. Splits until all bytes but the common ones are full ranges.
void split(std::vector<ByteRanges>& out, char32_t first, char32_t last) {
  for (int tail = 1; tail < 4; ++tail) {
    const char32_t mask = (char32_t{1} << (6 * tail)) - 1;
    if ((first & ~mask) == (last & ~mask)) continue;
    if ((first & mask) != 0) {
      split(out, first, first | mask);
      return split(out, (first | mask) + 1, last);
    }
    if ((last & mask) != mask) {
      split(out, first, (last & ~mask) - 1);
      return split(out, last & ~mask, last);
    }
  }
  std::string low;
  std::string high;
  utf8::append(low, first);
  utf8::append(high, last);
  ByteRanges ranges;
  for (std::size_t i = 0; i < low.size(); ++i)
    ranges.push_back({static_cast<std::uint8_t>(low[i]), static_cast<std::uint8_t>(high[i])});
  out.push_back(std::move(ranges));
}

void split_by_length(std::vector<ByteRanges>& out, CodeRange range) {
  constexpr std::array<char32_t, 4> ends = {0x7F, 0x7FF, 0xFFFF, last_code_point};
  for (const char32_t end : ends) {
    if (range.first > end) continue;
    const char32_t last = std::min(range.last, end);
    split(out, range.first, last);
    if (last == range.last) return;
    range.first = last + 1;
  }
}

ByteRange one(char byte) {
  return {static_cast<std::uint8_t>(byte), static_cast<std::uint8_t>(byte)};
}

void append_escape(std::vector<ByteRanges>& out, char32_t code) {
  constexpr std::string_view escaped = "\"\\\b\f\n\r\t";
  constexpr std::string_view letters = "\"\\bfnrt";
  const auto at = escaped.find(static_cast<char>(code));
  if (at != std::string_view::npos) {
    out.push_back({one('\\'), one(letters[at])});
    return;
  }
  ByteRanges sequence = {one('\\'), one('u'), one('0'), one('0'), one(code < 16 ? '0' : '1')};
  const char digit = "0123456789abcdef"[code % 16];
  sequence.push_back(one(digit));
  out.push_back(sequence);
  if (digit >= 'a') {
    sequence.back() = one(static_cast<char>(digit - 'a' + 'A'));
    out.push_back(sequence);
  }
}

}  // namespace

CharacterSet::CharacterSet(std::initializer_list<CodeRange> ranges) : ranges_(ranges) {
  normalize();
}

void CharacterSet::normalize() {
  std::ranges::sort(ranges_, {}, &CodeRange::first);
  std::vector<CodeRange> joined;
  const auto append = [&joined](CodeRange range) {
    if (range.first > range.last) return;
    if (!joined.empty() && range.first <= joined.back().last + 1)
      joined.back().last = std::max(joined.back().last, range.last);
    else
      joined.push_back(range);
  };
  for (const CodeRange& range : ranges_) {
    if (range.last < surrogates.first || range.first > surrogates.last) {
      append(range);
      continue;
    }
    append({range.first, surrogates.first - 1});
    if (range.last > surrogates.last) append({surrogates.last + 1, range.last});
  }
  ranges_ = std::move(joined);
}

void CharacterSet::add(char32_t first, char32_t last) {
  ranges_.push_back({first, last});
  normalize();
}

void CharacterSet::add(const CharacterSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
  normalize();
}

CharacterSet CharacterSet::inverted() const {
  CharacterSet result;
  char32_t next = 0;
  for (const CodeRange& range : ranges_) {
    if (range.first > next) result.ranges_.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= last_code_point) result.ranges_.push_back({next, last_code_point});
  result.normalize();
  return result;
}

CharacterSet CharacterSet::without(const CharacterSet& other) const {
  CharacterSet result = inverted();
  result.add(other);
  return result.inverted();
}

bool CharacterSet::contains(char32_t code) const {
  return std::ranges::any_of(ranges_,
                             [code](CodeRange range) { return range.first <= code && code <= range.last; });
}

std::vector<ByteRanges> byte_sequences(const CharacterSet& set, TextForm form) {
  std::vector<ByteRanges> out;
  if (form == TextForm::plain) {
    for (const CodeRange& range : set.ranges()) split_by_length(out, range);
    return out;
  }
  const CharacterSet escaped = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  const CharacterSet unescaped = set.without(escaped);
  for (const CodeRange& range : unescaped.ranges()) split_by_length(out, range);
  for (const CodeRange& range : escaped.ranges())
    for (char32_t code = range.first; code <= range.last; ++code)
      if (set.contains(code)) append_escape(out, code);
  return out;
}

}  // namespace inferno::grammar
