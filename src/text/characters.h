// Unicode's character properties, from utf8proc: classes as Rust's standard library and Oniguruma define them
// (the reference tokenizers are built on those), and how characters are displayed on a terminal.
#pragma once

#include <cstddef>
#include <string_view>

namespace inferno {

bool is_white_space(char32_t code);  // Unicode White_Space
bool is_numeric(char32_t code);      // Nd, Nl, No
bool is_punctuation(char32_t code);  // ASCII punctuation and P*
bool is_word_part(char32_t code);    // letters, marks, numbers, connectors
bool is_nonspacing_mark(char32_t code);

// The offset after the character (grapheme cluster) that begins at `at`; text.size() at the end. A byte that
// is not UTF-8 counts as one character.
std::size_t next_character(std::string_view text, std::size_t at);
// The offset where the character before `at` begins; 0 at the beginning.
std::size_t previous_character(std::string_view text, std::size_t at);

// Columns of one character as returned by next_character(): 0, 1 or 2.
int character_columns(std::string_view character);
// Columns of a text without control characters.
int columns(std::string_view text);

}  // namespace inferno
