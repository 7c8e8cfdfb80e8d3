// UTF-8 by hand: decoding, validation, and joining bytes into text without ever emitting half a character.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace inferno::utf8 {

struct Character {
  char32_t code = 0;
  int length = 0;  // bytes; 0 when there is no valid character here
};

Character decode(std::string_view text, std::size_t at);
void append(std::string& to, char32_t code);

// The offset of the first byte that belongs to no valid character.
std::optional<std::size_t> first_invalid(std::string_view text);

// Length of the character whose first byte this is, in text known to be valid.
constexpr std::size_t length_from_first_byte(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// Moves everything decided from `held` to the returned text: whole characters, and U+FFFD for bytes that can
// never become one. What may still become a character stays in `held`.
std::string take_decided(std::string& held, Replacement replacement);
// The same at the end of the text, where nothing can be completed any more.
std::string take_all(std::string& held, Replacement replacement);

}  // namespace inferno::utf8
