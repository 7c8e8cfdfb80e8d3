#include "chat/jinja/literals.h"

#include <fmt/format.h>

#include <charconv>

#include "base/utf8.h"
#include "chat/jinja/numbers.h"
#include "chat/jinja/unicode.h"

namespace inferno::jinja {
namespace {

int digit_value(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return 99;
}

// Digits with single underscores between them: the end of the longest such run, or `from`.
std::size_t skip_digits(std::string_view text, std::size_t from, int base) {
  std::size_t at = from;
  while (at < text.size()) {
    if (digit_value(text[at]) < base) {
      ++at;
    } else if (at > from && text[at] == '_' && at + 1 < text.size() && digit_value(text[at + 1]) < base) {
      ++at;
    } else {
      break;
    }
  }
  return at;
}

int base_of_prefix(std::string_view text) {
  if (text.size() < 3 || text[0] != '0') return 10;
  const char letter = static_cast<char>(text[1] | 0x20);
  const int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
  const std::size_t digit = text[2] == '_' ? 3 : 2;  // "0x_ff" is legal
  return base != 10 && digit < text.size() && digit_value(text[digit]) < base ? base : 10;
}

std::string without_underscores(std::string_view text) {
  std::string digits;
  for (const char letter : text) {
    if (letter != '_') digits += letter;
  }
  return digits;
}

// The hexadecimal digits of \x, \u and \U.
std::optional<char32_t> read_hex(std::string_view text, std::size_t at, std::size_t count) {
  if (text.size() < at + count) return std::nullopt;
  std::uint32_t value = 0;
  for (std::size_t i = at; i < at + count; ++i) {
    if (digit_value(text[i]) > 15) return std::nullopt;
    value = value * 16 + static_cast<std::uint32_t>(digit_value(text[i]));
  }
  if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return std::nullopt;
  return value;
}

char simple_escape(char letter) {
  switch (letter) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case 'a': return '\a';
    case 'b': return '\b';
    case 'f': return '\f';
    case 'v': return '\v';
    case '\\':
    case '\'':
    case '"': return letter;
    default: return 0;
  }
}

std::size_t append_octal(std::string& out, std::string_view text, std::size_t at) {
  char32_t value = 0;
  std::size_t end = at;
  for (; end < text.size() && end < at + 3 && digit_value(text[end]) < 8; ++end) {
    value = value * 8 + static_cast<char32_t>(digit_value(text[end]));
  }
  utf8::append(out, value);
  return end;
}

// Python first turns other characters into escapes of their own, so the backslash ends up quoting that.
std::size_t append_quoted_character(std::string& out, std::string_view text, std::size_t at) {
  const CodePoint point = code_point_at(text, at);
  const auto value = static_cast<std::uint32_t>(point.value);
  out += value < 0x100     ? fmt::format("\\x{:02x}", value)
         : value < 0x10000 ? fmt::format("\\u{:04x}", value)
                           : fmt::format("\\U{:08x}", value);
  return at + point.bytes;
}

}  // namespace

NumberSpelling scan_number(std::string_view text, bool integer_only) {
  if (base_of_prefix(text) != 10) {
    return {.bytes = skip_digits(text, text[2] == '_' ? 3 : 2, base_of_prefix(text)), .floating = false};
  }
  const std::size_t whole = skip_digits(text, 0, 10);
  std::size_t end = whole;
  if (!integer_only) {
    if (end + 1 < text.size() && text[end] == '.') {
      if (const std::size_t fraction = skip_digits(text, end + 1, 10); fraction > end + 1) end = fraction;
    }
    if (end < text.size() && (text[end] | 0x20) == 'e') {
      const std::size_t sign =
          end + 1 < text.size() && (text[end + 1] == '+' || text[end + 1] == '-') ? 1 : 0;
      const std::size_t from = end + 1 + sign;
      if (const std::size_t exponent = skip_digits(text, from, 10); exponent > from) end = exponent;
    }
  }
  if (end > whole) return {.bytes = end, .floating = true};
  // A leading zero stands alone: "012" is 0 followed by 12, which the parser then refuses.
  if (text[0] == '0') {
    std::size_t zeros = 1;
    while (zeros < whole && text[zeros] == '0') ++zeros;
    return {.bytes = zeros, .floating = false};
  }
  return {.bytes = whole, .floating = false};
}

std::optional<std::int64_t> parse_integer_literal(std::string_view spelling) {
  const int base = base_of_prefix(spelling);
  const std::string digits = without_underscores(base == 10 ? spelling : spelling.substr(2));
  std::int64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (result.ec != std::errc()) return std::nullopt;
  return value;
}

double parse_float_literal(std::string_view spelling) {
  return parse_decimal(without_underscores(spelling));
}

const char* decode_escapes(std::string& out, std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '\\' || at + 1 == text.size()) {
      out += text[at++];
      continue;
    }
    const char letter = text[++at];
    if (const char meant = simple_escape(letter); meant != 0) {
      out += meant;
      ++at;
    } else if (letter == '\n') {
      ++at;  // a line continued
    } else if (digit_value(letter) < 8) {
      at = append_octal(out, text, at);
    } else if (letter == 'x' || letter == 'u' || letter == 'U') {
      const std::size_t count = letter == 'x' ? 2 : letter == 'u' ? 4 : 8;
      const auto value = read_hex(text, at + 1, count);
      if (!value) return "a \\x, \\u or \\U escape is incomplete or names no character";
      utf8::append(out, *value);
      at += 1 + count;
    } else if (letter == 'N') {
      return "\\N{...} escapes are not supported";
    } else if (static_cast<unsigned char>(letter) >= 0x80) {
      at = append_quoted_character(out, text, at);
    } else {
      out += '\\';
      out += letter;
      ++at;
    }
  }
  return nullptr;
}

}  // namespace inferno::jinja
