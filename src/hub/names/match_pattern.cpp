#include <algorithm>
#include <optional>

#include "hub/names/file_selection.h"

namespace inferno::hub {
namespace {

// Whether `letter` is in the set that begins at pattern[at] == '['; `at` moves behind the set. nullopt when
// the bracket is never closed, and so only a bracket.
std::optional<bool> in_set(char letter, std::string_view pattern, std::size_t& at) {
  std::size_t from = at + 1;
  const bool negated = from < pattern.size() && (pattern[from] == '!' || pattern[from] == '^');
  if (negated) ++from;
  const std::size_t end = from < pattern.size() ? pattern.find(']', from + 1) : std::string_view::npos;
  if (end == std::string_view::npos) return std::nullopt;
  bool found = false;
  for (std::size_t i = from; i < end; ++i) {
    const bool is_range = i + 2 < end && pattern[i + 1] == '-';
    const char last = is_range ? pattern[i + 2] : pattern[i];
    if (letter >= pattern[i] && letter <= last) found = true;
    if (is_range) i += 2;
  }
  at = end + 1;
  return found != negated;
}

// One character of `path` against one element of the pattern, which is no star; `at` moves behind the
// element.
bool matches_one(char letter, std::string_view pattern, std::size_t& at) {
  if (pattern[at] == '?') {
    ++at;
    return true;
  }
  if (pattern[at] == '[') {
    if (const auto found = in_set(letter, pattern, at)) return *found;
  }
  return pattern[at++] == letter;
}

}  // namespace

// Goes back to the last star only, so that time is bounded by the product of the lengths.
bool matches_pattern(std::string_view path, std::string_view pattern) {
  const std::string all_below = pattern.ends_with('/') ? std::string(pattern) + "*" : std::string(pattern);
  pattern = all_below;
  constexpr std::size_t none = std::string_view::npos;
  std::size_t letter = 0, at = 0, star = none, star_letter = 0;
  while (letter < path.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = ++at;
      star_letter = letter;
      continue;
    }
    std::size_t behind = at;
    if (at < pattern.size() && matches_one(path[letter], pattern, behind)) {
      at = behind;
      ++letter;
    } else if (star != none) {
      at = star;
      letter = ++star_letter;
    } else {
      return false;
    }
  }
  return std::all_of(pattern.begin() + static_cast<std::ptrdiff_t>(at), pattern.end(),
                     [](char c) { return c == '*'; });
}

}  // namespace inferno::hub
