// GPT-2's byte alphabet: a printable character for every byte, so that a vocabulary can be stored as JSON.
// Letters and signs represent themselves, the other bytes are U+0100 and up (a space is Ġ).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace inferno::byte_alphabet {

// The characters that represent the bytes of `text`.
std::string write(std::string_view text);
// The bytes that `text` represents; nullopt if it contains a character outside the alphabet.
std::optional<std::string> read(std::string_view text);
// The same into `bytes`, whose memory is reused; false if a character is outside the alphabet.
bool read(std::string& bytes, std::string_view text);

}  // namespace inferno::byte_alphabet
