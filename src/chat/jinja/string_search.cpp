#include "chat/jinja/string_search.h"

#include <cstring>
#include <vector>

namespace inferno::jinja {

std::size_t find_text(std::string_view text, std::string_view pattern, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (pattern.empty()) return from;
  if (pattern.size() > text.size() - from) return std::string_view::npos;
  // glibc's memmem is the two-way algorithm; std::string_view::find is quadratic at worst.
  const void* found = memmem(text.data() + from, text.size() - from, pattern.data(), pattern.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

// Knuth, Morris and Pratt from the right: the pattern and the text read backwards.
std::size_t find_last_text(std::string_view text, std::string_view pattern) {
  const std::size_t size = pattern.size();
  if (size == 0) return text.size();
  if (size > text.size()) return std::string_view::npos;
  const auto wanted = [&](std::size_t i) { return pattern[size - 1 - i]; };
  std::vector<std::size_t> border(size, 0);
  for (std::size_t i = 1, matched = 0; i < size; ++i) {
    while (matched > 0 && wanted(i) != wanted(matched)) matched = border[matched - 1];
    if (wanted(i) == wanted(matched)) ++matched;
    border[i] = matched;
  }
  for (std::size_t i = text.size(), matched = 0; i-- > 0;) {
    while (matched > 0 && text[i] != wanted(matched)) matched = border[matched - 1];
    if (text[i] == wanted(matched)) ++matched;
    if (matched == size) return i;
  }
  return std::string_view::npos;
}

}  // namespace inferno::jinja
