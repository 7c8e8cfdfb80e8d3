// How text lies on a terminal: which code points form one character on the screen, and how many columns it
// takes. Unicode's tables come from utf8proc.
#pragma once

#include <cstddef>
#include <string_view>

namespace inferno {

// The offset behind the character (grapheme cluster) that begins at `at`; text.size() at the end. A byte
// that is not UTF-8 counts as a character of its own.
std::size_t next_character(std::string_view text, std::size_t at);
// The offset where the character before `at` begins; 0 at the beginning.
std::size_t previous_character(std::string_view text, std::size_t at);

// Columns of one character as next_character() cuts it: 0, 1 or 2.
int character_columns(std::string_view character);
// Columns of a text without control characters.
int columns(std::string_view text);

}  // namespace inferno
