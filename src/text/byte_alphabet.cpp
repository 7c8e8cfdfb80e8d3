#include "text/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "base/utf8.h"

namespace inferno::byte_alphabet {
namespace {

constexpr bool represents_itself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

constexpr int first_substitute = 0x100;
constexpr int alphabet_end = 0x144;

struct Alphabet {
  std::array<std::uint16_t, 256> character_of{};
  std::array<std::int16_t, alphabet_end> byte_of{};
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  alphabet.byte_of.fill(-1);
  int substitute = first_substitute;
  for (int byte = 0; byte < 256; ++byte) {
    const int character = represents_itself(byte) ? byte : substitute++;
    alphabet.character_of[static_cast<std::size_t>(byte)] = static_cast<std::uint16_t>(character);
    alphabet.byte_of[static_cast<std::size_t>(character)] = static_cast<std::int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet alphabet = make_alphabet();

}  // namespace

std::string write(std::string_view text) {
  std::string out;
  out.reserve(text.size() * 2);
  for (const char c : text) utf8::append(out, alphabet.character_of[static_cast<unsigned char>(c)]);
  return out;
}

bool read(std::string& bytes, std::string_view text) {
  bytes.clear();
  for (std::size_t at = 0; at < text.size();) {
    // Every character of the alphabet is one or two bytes long.
    const auto first = static_cast<unsigned char>(text[at]);
    std::size_t code = first;
    if (first >= 0x80) {
      if (first < 0xC2 || first > 0xC5 || at + 1 == text.size()) return false;
      const auto second = static_cast<unsigned char>(text[at + 1]);
      if ((second & 0xC0) != 0x80) return false;
      code = (static_cast<std::size_t>(first & 0x1F) << 6) | (second & 0x3F);
    }
    if (code >= alphabet.byte_of.size() || alphabet.byte_of[code] < 0) return false;
    bytes.push_back(static_cast<char>(alphabet.byte_of[code]));
    at += first < 0x80 ? 1 : 2;
  }
  return true;
}

std::optional<std::string> read(std::string_view text) {
  std::string bytes;
  if (!read(bytes, text)) return std::nullopt;
  return bytes;
}

}  // namespace inferno::byte_alphabet
