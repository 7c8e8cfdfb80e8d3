// UTF-8: decoding, validation, joining bytes into text without ever emitting half a character, and escaping
// untrusted text for a terminal or an error message.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace inferno::utf8 {

struct Character {
  char32_t code = 0;
  int length = 0;  // bytes; 0 if there is no valid character at this offset
};

Character decode(std::string_view text, std::size_t at);
void append(std::string& to, char32_t code);

// The offset of the first byte that belongs to no valid character.
std::optional<std::size_t> first_invalid(std::string_view text);
inline bool is_valid(std::string_view text) {
  return !first_invalid(text);
}

// Whether a byte continues a character, in text known to be valid.
constexpr bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}
// Where the character before `at` begins, in text known to be valid; `at` must be larger than 0.
constexpr std::size_t previous(std::string_view text, std::size_t at) {
  do {
    --at;
  } while (at > 0 && is_continuation(text[at]));
  return at;
}

// Length of the character whose first byte this is, in text known to be valid.
constexpr std::size_t length_from_first_byte(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// How many U+FFFD replace bytes that are not UTF-8. Byte-level vocabularies get one for each broken
// character, byte-fallback vocabularies one for each byte, as Hugging Face's decoders do.
enum class Replacement { per_character, per_byte };

// Moves complete characters from the front of `held` to the returned text, with U+FFFD for bytes that can
// never become a character. An unfinished character stays in `held`.
std::string take_decided(std::string& held, Replacement replacement);
// The same at the end of the text, where an unfinished character is replaced too.
std::string take_all(std::string& held, Replacement replacement);

// C0 and C1 control characters and the line and paragraph separators.
bool is_control(char32_t code);
// Bidirectional control characters, which can make a text look like a different one.
bool changes_direction(char32_t code);

}  // namespace inferno::utf8

namespace inferno {

// Untrusted text for a terminal: everything that could control it is written as \xNN, i.e. control characters
// except newline and tab, bidirectional control characters, and bytes that are not UTF-8.
std::string printable(std::string_view text);

// Untrusted text for an error message: in double quotes, on one line, escaped, cut after about `max_bytes`.
std::string quote(std::string_view text, std::size_t max_bytes = 96);

// The text as one word for a POSIX shell, in single quotes.
std::string shell_quoted(std::string_view text);
// The same, without quotes where they are not needed: for a command that a message advises.
std::string shell_word(std::string_view text);

// ASCII letters in lower case, for names that are compared without regard to case; other bytes stay.
std::string lower_case(std::string_view text);

// The text without blanks at its beginning and end.
std::string_view trimmed(std::string_view text, std::string_view blanks = " \t\r\n");

}  // namespace inferno
