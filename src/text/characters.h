// Character classes as Rust's standard library and Oniguruma define them, because the reference tokenizers
// are built on those. Categories come from utf8proc.
#pragma once

namespace inferno {

bool is_white_space(char32_t code);  // Unicode White_Space
bool is_numeric(char32_t code);      // Nd, Nl, No
bool is_punctuation(char32_t code);  // ASCII punctuation and P*
bool is_word_part(char32_t code);    // letters, marks, numbers, connectors
bool is_nonspacing_mark(char32_t code);

}  // namespace inferno
