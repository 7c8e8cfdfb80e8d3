// GPT-2 writes every byte as a printable character, so that a vocabulary can live in JSON: letters and signs
// stand for themselves, the rest for U+0100 and up (a space is Ġ). This is that alphabet, both ways.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace inferno::byte_alphabet {

// The characters that stand for the bytes of `text`.
std::string write(std::string_view text);
// The bytes that `text` stands for; nullopt when it holds a character outside the alphabet.
std::optional<std::string> read(std::string_view text);
// The same into `bytes`, whose memory is reused; false when outside the alphabet.
bool read(std::string& bytes, std::string_view text);

}  // namespace inferno::byte_alphabet
