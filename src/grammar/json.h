// JSON as a schema needs it: keys in their order, numbers as they were written, and where each value stands
// in the source.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/refusal.h"

namespace inferno::grammar {

struct JsonNode {
  enum class Kind { null, boolean, number, string, array, object };

  Kind kind = Kind::null;
  bool truth = false;
  std::string text;             // of a string, decoded; of a number, as it was written
  std::vector<JsonNode> items;  // of an array; the values of an object
  std::vector<std::string> keys;
  std::vector<std::uint32_t> sorted;  // indices of the keys, by name
  std::size_t begin = 0, end = 0;     // in the source

  bool is(Kind other) const { return kind == other; }
  // nullptr if this is no object or has no such key.
  const JsonNode* find(std::string_view key) const;
};

enum class HalfCharacters {
  refuse,
  keep,  // a lone surrogate becomes the three bytes that UTF-8 forbids
};

inline constexpr std::size_t max_json_depth = 256;

// RefusedError{invalid} naming the byte, also for repeated keys and for text that is not UTF-8;
// RefusedError{limit} for nesting deeper than max_json_depth.
JsonNode parse_json_text(std::string_view text, HalfCharacters half = HalfCharacters::refuse);

// The string as it stands in a JSON text, quotes included, with the shortest escapes.
std::string json_quoted(std::string_view text);

}  // namespace inferno::grammar
