#include "cli/config/toml.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/utf8.h"

namespace inferno::toml {
namespace {

constexpr std::size_t max_key = 256, max_parts = 8;

constexpr std::string_view supported =
    "Inferno reads tables, keys, strings on one line, integers, floats, booleans, and arrays of these";

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

bool is_bare(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || is_digit(letter) ||
         letter == '_' || letter == '-';
}

// 16 for a letter that is no digit.
unsigned digit_of(char letter) {
  if (is_digit(letter)) return static_cast<unsigned>(letter - '0');
  if (letter >= 'a' && letter <= 'f') return static_cast<unsigned>(letter - 'a') + 10;
  if (letter >= 'A' && letter <= 'F') return static_cast<unsigned>(letter - 'A') + 10;
  return 16;
}

// The word without underscores; nullopt unless each of them is between two digits.
std::optional<std::string> without_underscores(std::string_view word) {
  std::string out;
  for (std::size_t at = 0; at < word.size(); ++at) {
    if (word[at] != '_') {
      out += word[at];
      continue;
    }
    const bool is_between =
        at > 0 && at + 1 < word.size() && digit_of(word[at - 1]) < 16 && digit_of(word[at + 1]) < 16;
    if (!is_between) return std::nullopt;
  }
  return out;
}

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// No digits, or superfluous zeros before them.
bool is_bad_whole(std::string_view digits) {
  return !all_digits(digits) || (digits.size() > 1 && digits[0] == '0');
}

std::optional<Scalar> integer_of(std::string_view word) {
  int base = 10;
  if (word.starts_with("0x")) base = 16;
  if (word.starts_with("0o")) base = 8;
  if (word.starts_with("0b")) base = 2;
  const bool is_negative = base == 10 && word.starts_with('-');
  std::string_view digits = word;
  if (base != 10) digits.remove_prefix(2);
  if (base == 10 && (word.starts_with('-') || word.starts_with('+'))) digits.remove_prefix(1);
  if (base == 10 && is_bad_whole(digits)) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (problem != std::errc() || end != digits.data() + digits.size() || value > largest) return std::nullopt;
  return Scalar{Kind::integer, fmt::format("{}{}", is_negative && value != 0 ? "-" : "", value)};
}

std::optional<Scalar> float_of(std::string_view word) {
  std::string_view rest = word;
  if (rest.starts_with('-') || rest.starts_with('+')) rest.remove_prefix(1);
  const std::size_t exponent = rest.find_first_of("eE");
  if (exponent != std::string_view::npos) {
    std::string_view digits = rest.substr(exponent + 1);
    if (digits.starts_with('-') || digits.starts_with('+')) digits.remove_prefix(1);
    if (!all_digits(digits)) return std::nullopt;
  }
  const std::string_view mantissa = rest.substr(0, exponent);
  const std::size_t point = mantissa.find('.');
  if (is_bad_whole(mantissa.substr(0, point))) return std::nullopt;
  if (point != std::string_view::npos && !all_digits(mantissa.substr(point + 1))) return std::nullopt;
  if (point == std::string_view::npos && exponent == std::string_view::npos) return std::nullopt;
  const std::string_view number = word.starts_with('+') ? word.substr(1) : word;
  double value = 0;
  const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (problem != std::errc() || end != number.data() + number.size()) return std::nullopt;
  return Scalar{Kind::floating, std::string(number)};
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {}

  Document read() {
    if (text_.size() > max_bytes)
      refuse("larger than 1 MiB", "a configuration has a few lines: is it the right file?");
    check_bytes();
    for (skip_blank_lines(); !is_end(); skip_blank_lines()) {
      if (peek() == '[') {
        read_header();
      } else {
        read_entry();
      }
      expect_end_of_line();
    }
    return std::move(document_);
  }

 private:
  // What a path is. A table that dotted keys made belongs to its place and cannot be opened by a header.
  enum class Use { value, header, parent_of_header, dotted };
  struct Place {
    Use use = Use::value;
    int line = 0;
  };

  [[noreturn]] void refuse_at(Position at, const std::string& what, const std::string& why) const {
    fail(ErrorKind::invalid_request, fmt::format("{}:{}:{}: {}", origin_, at.line, at.column, what),
         {.why = why, .next = "correct the line, then: inferno config --check"});
  }
  [[noreturn]] void refuse(const std::string& what, const std::string& why = "") const {
    refuse_at(position_, what, why);
  }

  bool is_end() const { return at_ == text_.size(); }
  bool is_line_end() const { return is_end() || peek() == '\n' || text_.substr(at_).starts_with("\r\n"); }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool is_next(std::string_view letters) const { return text_.substr(at_).starts_with(letters); }

  void advance() {
    const char letter = text_[at_++];
    if (letter == '\n') {
      ++position_.line;
      position_.column = 1;
    } else if (at_ == text_.size() || !utf8::is_continuation(text_[at_])) {
      ++position_.column;
    }
  }
  void advance(std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) advance();
  }

  // The character at the cursor, for messages.
  std::string found() const {
    if (is_end()) return "the end of the file";
    if (is_line_end()) return "the end of the line";
    return quote(text_.substr(at_, utf8::length_from_first_byte(peek())));
  }

  // UTF-8 without control characters: afterwards every byte is part of a character.
  void check_bytes() {
    const std::size_t invalid = utf8::first_invalid(text_).value_or(text_.size());
    while (at_ < invalid) {
      const char letter = peek();
      const bool is_return = letter == '\r' && is_next("\r\n");
      const auto code = static_cast<unsigned char>(letter);
      if ((code < 0x20 && letter != '\t' && letter != '\n' && !is_return) || code == 0x7f)
        refuse(fmt::format("control character 0x{:02x}", code));
      advance();
    }
    if (invalid < text_.size()) refuse("not UTF-8");
    at_ = 0;
    position_ = {};
  }

  void skip_blanks() {
    while (peek() == ' ' || peek() == '\t') advance();
  }
  void skip_comment() {
    if (peek() != '#') return;
    while (!is_line_end()) advance();
  }
  void skip_blank_lines() {
    for (;;) {
      skip_blanks();
      skip_comment();
      if (is_end() || !is_line_end()) return;
      advance(peek() == '\r' ? 2 : 1);
    }
  }
  void expect_end_of_line() {
    skip_blanks();
    skip_comment();
    if (!is_line_end()) refuse(fmt::format("expected the end of the line, found {}", found()));
  }

  void read_header() {
    const Position at = position_;
    if (is_next("[[")) refuse("arrays of tables are not supported", std::string(supported));
    advance();
    const std::vector<std::string> path = read_key();
    if (peek() != ']') refuse(fmt::format("expected ], found {}", found()));
    advance();
    claim_parents(path, 1, Use::parent_of_header, at);
    const auto [place, is_new] = places_.try_emplace(joined(path, path.size()), Place{Use::header, at.line});
    if (!is_new && place->second.use != Use::parent_of_header) refuse_twice(path, place->second, at);
    place->second = {Use::header, at.line};
    document_.tables.push_back({path, at});
    table_ = path;
  }

  void read_entry() {
    Entry entry;
    entry.key_at = position_;
    const std::vector<std::string> key = read_key();
    entry.path = table_;
    entry.path.insert(entry.path.end(), key.begin(), key.end());
    if (entry.path.size() > max_parts)
      refuse_at(entry.key_at, fmt::format("a key of more than {} parts", max_parts), "");
    if (peek() != '=') refuse(fmt::format("expected = after the key, found {}", found()));
    advance();
    skip_blanks();
    entry.value_at = position_;
    claim_parents(entry.path, table_.size() + 1, Use::dotted, entry.key_at);
    const auto [place, is_new] =
        places_.try_emplace(joined(entry.path, entry.path.size()), Place{Use::value, entry.key_at.line});
    if (!is_new) refuse_twice(entry.path, place->second, entry.key_at);
    if (peek() == '[') {
      entry.is_array = true;
      entry.values = read_array();
    } else {
      entry.values.push_back(read_scalar());
    }
    document_.entries.push_back(std::move(entry));
  }

  // Makes the tables that hold the last part of `path`, beginning with the one of `first` parts.
  void claim_parents(const std::vector<std::string>& path, std::size_t first, Use use, Position at) {
    for (std::size_t parts = first; parts < path.size(); ++parts) {
      const auto [place, is_new] = places_.try_emplace(joined(path, parts), Place{use, at.line});
      const Use before = place->second.use;
      const bool fits = use == Use::dotted ? before == Use::dotted
                                           : before == Use::header || before == Use::parent_of_header;
      if (!is_new && !fits)
        refuse_twice({path.begin(), path.begin() + static_cast<std::ptrdiff_t>(parts)}, place->second, at);
    }
  }

  [[noreturn]] void refuse_twice(const std::vector<std::string>& path, const Place& before,
                                 Position at) const {
    std::string name;
    for (const std::string& part : path) name += (name.empty() ? "" : ".") + written_key(part);
    refuse_at(
        at, fmt::format("{} is defined twice", quote(name)),
        fmt::format("line {} has it as a {}", before.line, before.use == Use::value ? "value" : "table"));
  }

  static std::string joined(const std::vector<std::string>& path, std::size_t parts) {
    std::string text;
    for (std::size_t i = 0; i < parts; ++i) text += path[i] + '\n';  // no key has a line end: see read_string
    return text;
  }

  // Up to the = or ] after it.
  std::vector<std::string> read_key() {
    std::vector<std::string> parts;
    for (;;) {
      skip_blanks();
      const Position at = position_;
      parts.push_back(read_part());
      if (parts.back().size() > max_key)
        refuse_at(at, fmt::format("a key of more than {} bytes", max_key), "");
      if (parts.size() > max_parts) refuse_at(at, fmt::format("a key of more than {} parts", max_parts), "");
      skip_blanks();
      if (peek() != '.') return parts;
      advance();
    }
  }

  std::string read_part() {
    if (peek() == '"' || peek() == '\'') {
      const Position at = position_;
      std::string key = read_string();
      if (key.find('\n') != std::string::npos) refuse_at(at, "a key with a line end", "");
      return key;
    }
    std::string key;
    for (; is_bare(peek()); advance()) key += peek();
    if (key.empty())
      refuse(fmt::format("expected a key, found {}", found()),
             "a key has letters, digits, - and _, or is a string in quotes");
    return key;
  }

  std::vector<Scalar> read_array() {
    std::vector<Scalar> values;
    advance();
    for (;;) {
      skip_blank_lines();
      if (peek() == ']') break;
      if (peek() == '[') refuse("arrays of arrays are not supported", std::string(supported));
      values.push_back(read_scalar());
      skip_blank_lines();
      if (peek() == ']') break;
      if (peek() != ',') refuse(fmt::format("expected , or ] in an array, found {}", found()));
      advance();
    }
    advance();
    return values;
  }

  Scalar read_scalar() {
    if (peek() == '"' || peek() == '\'') return {Kind::string, read_string()};
    if (peek() == '{') refuse("inline tables are not supported", std::string(supported));
    const Position at = position_;
    std::string word;
    for (; is_bare(peek()) || peek() == '.' || peek() == '+' || peek() == ':'; advance()) word += peek();
    if (word.empty())
      refuse(fmt::format("expected a value, found {}", found()), "a text is written in quotes");
    if (word == "true" || word == "false") return {Kind::boolean, word};
    if (const auto plain = without_underscores(word)) {
      if (const auto value = integer_of(*plain)) return *value;
      if (const auto value = float_of(*plain)) return *value;
    }
    const bool is_number = is_digit(word[0]) || word[0] == '-' || word[0] == '+' || word[0] == '.';
    refuse_at(at, fmt::format("{} is not a value", quote(word)),
              is_number ? "numbers are written like 8, 0.7 or 1e-3; dates are not supported"
                        : "a text is written in quotes: " + fmt::format("\"{}\"", printable(word)));
  }

  std::string read_string() {
    const char mark = peek();
    if (is_next(std::string(3, mark)))
      refuse("strings of several lines are not supported", std::string(supported));
    const Position at = position_;
    advance();
    std::string text;
    while (peek() != mark) {
      if (is_line_end()) refuse_at(at, "a string without its closing quote", "");
      if (peek() == '\\' && mark == '"') {
        read_escape(text);
      } else {
        text += peek();
        advance();
      }
    }
    advance();
    return text;
  }

  void read_escape(std::string& text) {
    const Position at = position_;
    advance();
    const char letter = peek();
    constexpr std::string_view names = "btnfr\"\\", meanings = "\b\t\n\f\r\"\\";
    if (const std::size_t found = names.find(letter); !is_line_end() && found != std::string_view::npos) {
      text += meanings[found];
      return advance();
    }
    const std::size_t digits = letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
    if (digits == 0 || is_line_end())
      refuse_at(at, "an unknown escape in a string",
                R"(known are \b \t \n \f \r \" \\ \uXXXX; a string in ' quotes has no escapes)");
    advance();
    char32_t code = 0;
    for (std::size_t i = 0; i < digits; ++i, advance()) {
      const unsigned digit = is_end() ? 16 : digit_of(peek());
      if (digit == 16) refuse_at(at, fmt::format("expected {} hexadecimal digits", digits), "");
      code = code * 16 + digit;
    }
    const bool is_surrogate = code >= 0xD800 && code < 0xE000;
    if (code == 0 || code > 0x10FFFF || is_surrogate)
      refuse_at(at, "not a character that a text can have", "");
    utf8::append(text, code);
  }

  const std::string_view text_;
  const std::string& origin_;
  std::size_t at_ = 0;
  Position position_;
  Document document_;
  std::vector<std::string> table_;  // of the last header
  std::map<std::string, Place> places_;
};

}  // namespace

Document parse(std::string_view text, const std::string& origin) {
  return Reader(text, origin).read();
}

std::string written_key(std::string_view key) {
  for (const char letter : key) {
    if (!is_bare(letter)) return quote(key, max_key);
  }
  return key.empty() ? "\"\"" : std::string(key);
}

}  // namespace inferno::toml
