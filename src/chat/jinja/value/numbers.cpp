#include "chat/jinja/value/numbers.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "chat/jinja/unicode/characters.h"

namespace inferno::jinja {

int digit_value(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return 99;
}

namespace {

std::string_view strip_spaces(std::string_view text) {
  while (!text.empty()) {
    const CodePoint point = code_point_at(text, 0);
    if (!is_space(point.value)) break;
    text.remove_prefix(point.bytes);
  }
  while (!text.empty()) {
    const CodePoint point = code_point_before(text, text.size());
    if (!is_space(point.value)) break;
    text.remove_suffix(point.bytes);
  }
  return text;
}

// Python reads the decimal digits of every script.
std::string ascii_digits(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (point.value >= 0x80 && is_decimal(point.value)) {
      plain += static_cast<char>('0' + decimal_value(point.value));
    } else {
      plain += text.substr(at, point.bytes);
    }
    at += point.bytes;
  }
  return plain;
}

// Python allows single underscores between digits. nullopt if there is one elsewhere.
std::optional<std::string> drop_underscores(std::string_view text) {
  const auto is_digit_char = [](char letter) {
    return (letter >= '0' && letter <= '9') || ((letter | 0x20) >= 'a' && (letter | 0x20) <= 'z');
  };
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      digits += text[i];
      continue;
    }
    const bool between =
        i > 0 && i + 1 < text.size() && is_digit_char(text[i - 1]) && is_digit_char(text[i + 1]);
    if (!between) return std::nullopt;
  }
  return digits;
}

bool equals_ignoring_case(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((text[i] | 0x20) != lower[i]) return false;
  }
  return true;
}

bool looks_decimal(std::string_view text) {
  bool digits = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (letter >= '0' && letter <= '9') {
      digits = true;
    } else if (letter == '+' || letter == '-') {
      if (i == 0 || (text[i - 1] | 0x20) != 'e') return false;
    } else if (letter != '.' && (letter | 0x20) != 'e') {
      return false;
    }
  }
  return digits;
}

// A decimal number without sign or spaces; infinity if it is too large, zero if too small.
double parse_decimal(std::string_view digits) {
  double value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ec != std::errc::result_out_of_range) return value;
  // from_chars does not set the value, so the exponent's sign tells overflow from underflow.
  const std::size_t exponent = digits.find_first_of("eE");
  const bool tiny = exponent == std::string_view::npos
                        ? digits.find_first_of("123456789") > digits.find('.')
                        : exponent + 1 < digits.size() && digits[exponent + 1] == '-';
  return tiny ? 0.0 : std::numeric_limits<double>::infinity();
}

// The end of the longest run of digits with single underscores between them; `from` if there is none.
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

}  // namespace

std::string format_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char digits[64];
  // Python uses an exponent below 1e-4 and from 1e16 on; to_chars would choose the shorter form.
  const double magnitude = std::fabs(value);
  const bool plain = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(digits, digits + sizeof digits, value, format).ptr;
  std::string text(digits, end);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::optional<double> parse_float(std::string_view text) {
  const auto cleaned = drop_underscores(ascii_digits(strip_spaces(text)));
  if (!cleaned || cleaned->empty()) return std::nullopt;
  std::string_view digits = *cleaned;
  const bool negative = digits[0] == '-';
  if (digits[0] == '-' || digits[0] == '+') digits.remove_prefix(1);
  const double sign = negative ? -1.0 : 1.0;
  if (equals_ignoring_case(digits, "inf") || equals_ignoring_case(digits, "infinity")) {
    return sign * std::numeric_limits<double>::infinity();
  }
  if (equals_ignoring_case(digits, "nan")) return std::numeric_limits<double>::quiet_NaN();
  if (!looks_decimal(digits)) return std::nullopt;
  double value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ptr != digits.data() + digits.size()) return std::nullopt;
  return sign * parse_decimal(digits);
}

std::optional<std::int64_t> parse_int(std::string_view text, int base, bool& overflowed) {
  overflowed = false;
  const auto cleaned = drop_underscores(ascii_digits(strip_spaces(text)));
  if (!cleaned || cleaned->empty()) return std::nullopt;
  std::string_view digits = *cleaned;
  const bool negative = digits[0] == '-';
  if (digits[0] == '-' || digits[0] == '+') digits.remove_prefix(1);
  if (digits.size() > 2 && digits[0] == '0') {
    const char letter = static_cast<char>(digits[1] | 0x20);
    const int prefix = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (prefix != 0 && (base == prefix || base == 0)) {
      digits.remove_prefix(2);
      base = prefix;
    }
  }
  if (base == 0) base = 10;
  if (digits.empty() || digits[0] == '-' || digits[0] == '+') return std::nullopt;
  const std::string spelled = (negative ? "-" : "") + std::string(digits);
  std::int64_t value = 0;
  const auto result = std::from_chars(spelled.data(), spelled.data() + spelled.size(), value, base);
  if (result.ptr != spelled.data() + spelled.size()) return std::nullopt;
  overflowed = result.ec == std::errc::result_out_of_range;
  if (result.ec != std::errc() && !overflowed) return std::nullopt;
  return value;
}

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
  // A leading zero is a number of its own: "012" is 0 followed by 12, which the parser then refuses.
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

}  // namespace inferno::jinja
