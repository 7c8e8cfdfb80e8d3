// Sets of Unicode characters, and how they are written in bytes.
#pragma once

#include <cstdint>
#include <vector>

namespace inferno::grammar {

inline constexpr char32_t last_code_point = 0x10FFFF;

struct CodeRange {
  char32_t first = 0;
  char32_t last = 0;
  bool operator==(const CodeRange&) const = default;
};

// Sorted ranges that neither overlap nor touch; never contains surrogates.
class CharacterSet {
 public:
  CharacterSet() = default;
  CharacterSet(std::initializer_list<CodeRange> ranges);
  static CharacterSet all() { return {{0, last_code_point}}; }

  void add(char32_t first, char32_t last);
  void add(const CharacterSet& other);
  CharacterSet inverted() const;
  CharacterSet without(const CharacterSet& other) const;
  bool contains(char32_t code) const;
  bool empty() const { return ranges_.empty(); }
  const std::vector<CodeRange>& ranges() const { return ranges_; }

 private:
  void normalize();
  std::vector<CodeRange> ranges_;
};

// A sequence of up to 12 ranges of bytes; the texts of a range are their product.
struct ByteRange {
  std::uint8_t first = 0;
  std::uint8_t last = 0;
};
using ByteRanges = std::vector<ByteRange>;

// Kinds of characters by which tokens are sorted, so that states that take all of a kind need not look at the
// tokens. Plain ones stand unescaped in a JSON string; the line separators are left out, because no dot of an
// expression matches them. Word characters are ASCII letters and digits.
constexpr bool is_plain(char32_t code) {
  return code >= 0x20 && code != '"' && code != '\\' && code != 0x7F && code != 0x2028 && code != 0x2029;
}
constexpr bool is_word(char32_t code) {
  return (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') || (code >= 'a' && code <= 'z');
}

// How characters stand in the text: as they are, or as the content of a JSON string, where quotes,
// backslashes and control characters are escaped in the shortest way.
enum class TextForm { plain, json_string };

// All byte sequences that stand for a character of the set.
std::vector<ByteRanges> byte_sequences(const CharacterSet& set, TextForm form);

}  // namespace inferno::grammar
