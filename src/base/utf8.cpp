#include "base/utf8.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

namespace inferno::utf8 {
namespace {

constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

unsigned char byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

// What a first byte requires. The range of the second byte excludes overlong forms, surrogates and everything
// above U+10FFFF.
struct Lead {
  int length = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
};

Lead lead(unsigned char first) {
  if (first < 0x80) return {.length = 1};
  if (first >= 0xC2 && first <= 0xDF) return {.length = 2};
  if (first == 0xE0) return {.length = 3, .low = 0xA0};
  if (first == 0xED) return {.length = 3, .high = 0x9F};
  if (first >= 0xE1 && first <= 0xEF) return {.length = 3};
  if (first == 0xF0) return {.length = 4, .low = 0x90};
  if (first == 0xF4) return {.length = 4, .high = 0x8F};
  if (first >= 0xF1 && first <= 0xF3) return {.length = 4};
  return {};
}

// How many bytes from `at` on can begin a valid character; equal to the character's length if it is complete.
int valid_prefix(std::string_view text, std::size_t at) {
  const Lead first = lead(byte_at(text, at));
  if (first.length == 0) return 0;
  int count = 1;
  while (count < first.length && at + static_cast<std::size_t>(count) < text.size()) {
    const unsigned char next = byte_at(text, at + static_cast<std::size_t>(count));
    const unsigned char low = count == 1 ? first.low : 0x80;
    const unsigned char high = count == 1 ? first.high : 0xBF;
    if (next < low || next > high) break;
    ++count;
  }
  return count;
}

std::size_t ascii_prefix(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end + 8 <= text.size()) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + end, 8);
    if ((word & 0x8080808080808080U) != 0) break;
    end += 8;
  }
  while (end < text.size() && byte_at(text, end) < 0x80) ++end;
  return end - at;
}

std::string take(std::string& held, Replacement replacement, bool at_end) {
  std::string text;
  std::size_t at = 0;
  while (at < held.size()) {
    if (const std::size_t plain = ascii_prefix(held, at); plain > 0) {
      text.append(held, at, plain);
      at += plain;
      continue;
    }
    const int prefix = valid_prefix(held, at);
    const auto bytes = static_cast<std::size_t>(prefix);
    if (prefix > 0 && prefix == lead(byte_at(held, at)).length) {
      text.append(held, at, bytes);
      at += bytes;
    } else if (prefix > 0 && at + bytes == held.size() && !at_end) {
      break;
    } else {
      const std::size_t broken = prefix == 0 ? 1 : bytes;
      const std::size_t marks = replacement == Replacement::per_byte ? broken : 1;
      for (std::size_t i = 0; i < marks; ++i) text += replacement_character;
      at += broken;
    }
  }
  held.erase(0, at);
  return text;
}

}  // namespace

Character decode(std::string_view text, std::size_t at) {
  const int length = valid_prefix(text, at);
  const unsigned char first = byte_at(text, at);
  if (length == 0 || length != lead(first).length) return {};
  if (length == 1) return {.code = first, .length = 1};
  char32_t code = first & (0x7FU >> length);
  for (int i = 1; i < length; ++i) {
    code = (code << 6) | (byte_at(text, at + static_cast<std::size_t>(i)) & 0x3FU);
  }
  return {.code = code, .length = length};
}

void append(std::string& to, char32_t code) {
  const auto put = [&to](char32_t byte) {
    to.push_back(static_cast<char>(static_cast<unsigned char>(byte)));
  };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

std::optional<std::size_t> first_invalid(std::string_view text) {
  std::size_t at = 0;
  while (true) {
    at += ascii_prefix(text, at);
    if (at == text.size()) return std::nullopt;
    const int length = valid_prefix(text, at);
    if (length == 0 || length != lead(byte_at(text, at)).length) return at;
    at += static_cast<std::size_t>(length);
  }
}

std::string take_decided(std::string& held, Replacement replacement) {
  return take(held, replacement, false);
}

std::string take_all(std::string& held, Replacement replacement) {
  return take(held, replacement, true);
}

bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029;
}

bool changes_direction(char32_t code) {
  return code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

}  // namespace inferno::utf8

namespace inferno {
namespace {

// Appends the character at the start of `text`, escaped if it is not safe to print, and returns its length.
std::size_t append_escaped(std::string& out, std::string_view text, std::string_view harmless_controls) {
  const utf8::Character character = utf8::decode(text, 0);
  const std::size_t length = character.length == 0 ? 1 : static_cast<std::size_t>(character.length);
  const bool harmless = harmless_controls.find(text.front()) != std::string_view::npos;
  const bool unsafe =
      character.length == 0 || utf8::is_control(character.code) || utf8::changes_direction(character.code);
  if (unsafe && !harmless) {
    for (const char byte : text.substr(0, length))
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  } else {
    out += text.substr(0, length);
  }
  return length;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) text.remove_prefix(append_escaped(out, text, "\n\t"));
  return out;
}

std::string quote(std::string_view text, std::size_t max_bytes) {
  std::string out = "\"";
  while (!text.empty() && out.size() < max_bytes) {
    if (text.front() == '"' || text.front() == '\\') out += '\\';
    text.remove_prefix(append_escaped(out, text, {}));
  }
  if (!text.empty()) out += "...";
  return out + "\"";
}

std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char letter : text) {
    if (letter == '\'') {
      out += "'\\''";
    } else {
      out += letter;
    }
  }
  return out + "'";
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,";
  const bool is_plain = !text.empty() && text.find_first_not_of(plain) == std::string_view::npos;
  return is_plain ? std::string(text) : shell_quoted(text);
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& letter : out) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return out;
}

std::string_view trimmed(std::string_view text, std::string_view blanks) {
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

}  // namespace inferno
