#include "chat/jinja/syntax/parser.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "base/error.h"
#include "base/utf8.h"

namespace inferno::jinja {
namespace {

std::string normalize_newlines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
      continue;
    }
    text += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

bool is_ascii_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

// 0 to 15, or 99 for a character that is not a hexadecimal digit.
int digit_value(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return 99;
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

// Python first turns other characters into escapes of their own, so the backslash quotes that escape.
std::size_t append_quoted_character(std::string& out, std::string_view text, std::size_t at) {
  const CodePoint point = code_point_at(text, at);
  const auto value = static_cast<std::uint32_t>(point.value);
  out += value < 0x100     ? fmt::format("\\x{:02x}", value)
         : value < 0x10000 ? fmt::format("\\u{:04x}", value)
                           : fmt::format("\\U{:08x}", value);
  return at + point.bytes;
}

// Appends the text between the quotes with Python's "unicode-escape" sequences resolved. Returns a
// description of the problem, or nullptr.
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
      if (!value) return "a \\x, \\u or \\U escape is incomplete or invalid";
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

struct NumberSpelling {
  std::size_t bytes;
  bool floating;
};
// The longest number literal at the start of `text`, which must begin with a digit.
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

class Lexer {
 public:
  Lexer(std::string_view source, std::string_view name) : text_(normalize_newlines(source)), name_(name) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) root();
    add(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  enum class Tag { statement, output, comment };

  [[noreturn]] void refuse(const std::string& problem) const {
    fail(ErrorKind::corrupt, fmt::format("{}, line {}: {}", name_, line_, problem));
  }

  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, line_, std::move(text)}); }

  void advance(std::size_t to) {
    for (; at_ < to; ++at_) line_ += text_[at_] == '\n';
  }

  bool starts(std::size_t at, std::string_view word) const {
    return std::string_view(text_).substr(at).starts_with(word);
  }

  std::size_t skip_spaces(std::size_t at) const {
    while (at < text_.size()) {
      const CodePoint point = code_point_at(text_, at);
      if (!is_space(point.value)) break;
      at += point.bytes;
    }
    return at;
  }

  // The next "{{", "{%" or "{#".
  std::size_t find_tag(std::size_t from) const {
    for (std::size_t at = text_.find('{', from); at != std::string::npos; at = text_.find('{', at + 1)) {
      if (at + 1 < text_.size() && (text_[at + 1] == '{' || text_[at + 1] == '%' || text_[at + 1] == '#')) {
        return at;
      }
    }
    return std::string::npos;
  }

  char sign_at(std::size_t at) const {
    return at < text_.size() && (text_[at] == '-' || text_[at] == '+') ? text_[at] : ' ';
  }

  // The text up to `tag`, stripped as the tag's sign and lstrip_blocks require.
  void add_data(std::size_t tag, char sign, bool may_strip_line) {
    std::string_view data = std::string_view(text_).substr(at_, tag - at_);
    if (sign == '-') {
      while (!data.empty()) {
        const CodePoint point = code_point_before(data, data.size());
        if (!is_space(point.value)) break;
        data.remove_suffix(point.bytes);
      }
    } else if (sign != '+' && may_strip_line) {
      const std::size_t newline = data.rfind('\n');
      const std::size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
      if ((line_start > 0 || line_starting_) && skip_spaces(at_ + line_start) >= tag) {
        data = data.substr(0, line_start);
      }
    }
    if (!data.empty()) add(TokenKind::data, std::string(data));
    advance(tag);
  }

  void root() {
    const std::size_t tag = find_tag(at_);
    if (tag == std::string::npos) {
      add(TokenKind::data, text_.substr(at_));
      advance(text_.size());
      return;
    }
    const Tag kind = text_[tag + 1] == '{'   ? Tag::output
                     : text_[tag + 1] == '%' ? Tag::statement
                                             : Tag::comment;
    const char sign = sign_at(tag + 2);
    add_data(tag, sign, kind != Tag::output);
    line_starting_ = false;
    if (kind == Tag::statement && raw_block()) return;
    advance(tag + (sign == ' ' ? 2 : 3));
    switch (kind) {
      case Tag::comment: comment(); break;
      case Tag::statement: inside(TokenKind::statement_begin, TokenKind::statement_end, "%}"); break;
      case Tag::output: inside(TokenKind::output_begin, TokenKind::output_end, "}}"); break;
    }
  }

  // Skips `end` (as "%}", "-%}" or "+%}") at `at`; false if it is not there. trim_blocks drops one newline
  // after statements and comments.
  bool close(std::size_t at, std::string_view end, bool trims) {
    std::size_t after = 0;
    if (starts(at, end)) {
      after = at + end.size();
      if (trims && after < text_.size() && text_[after] == '\n') ++after;
    } else if (at < text_.size() && text_[at] == '-' && starts(at + 1, end)) {
      after = skip_spaces(at + 1 + end.size());
    } else if (trims && at < text_.size() && text_[at] == '+' && starts(at + 1, end)) {
      after = at + 1 + end.size();
    } else {
      return false;
    }
    advance(after);
    line_starting_ = text_[after - 1] == '\n';
    return true;
  }

  void comment() {
    const std::size_t end = text_.find("#}", at_);
    if (end == std::string::npos) refuse("a comment is not closed");
    const bool is_signed = end > at_ && sign_at(end - 1) != ' ';
    close(is_signed ? end - 1 : end, "#}", /*trims=*/true);
  }

  // "{% raw %}" … "{% endraw %}": the text between them is copied unchanged.
  bool raw_block() {
    std::size_t at = at_ + 2;
    if (sign_at(at) != ' ') ++at;
    at = skip_spaces(at);
    if (!starts(at, "raw")) return false;
    at = skip_spaces(at + 3);
    if (starts(at, "-%}")) {
      advance(skip_spaces(at + 3));
    } else if (starts(at, "%}")) {
      advance(at + 2);
    } else {
      return false;
    }
    line_starting_ = text_[at_ - 1] == '\n';
    for (std::size_t tag = text_.find("{%", at_); tag != std::string::npos; tag = text_.find("{%", tag + 1)) {
      const char sign = sign_at(tag + 2);
      const std::size_t word = skip_spaces(tag + (sign == ' ' ? 2 : 3));
      if (!starts(word, "endraw")) continue;
      const std::size_t end = skip_spaces(word + 6);
      if (!starts(end, "%}") && !starts(end, "-%}") && !starts(end, "+%}")) continue;
      add_data(tag, sign, /*may_strip_line=*/true);
      close(end, "%}", /*trims=*/true);
      return true;
    }
    refuse("a raw block is not closed");
  }

  void inside(TokenKind begin, TokenKind finish, std::string_view end) {
    add(begin, "");
    brackets_.clear();
    while (true) {
      advance(skip_spaces(at_));
      if (at_ >= text_.size()) refuse(fmt::format("a tag is not closed with {}", end));
      const int line = line_;
      if (brackets_.empty() && close(at_, end, /*trims=*/end == "%}")) {
        tokens_.push_back({finish, line, ""});
        return;
      }
      word();
    }
  }

  void word() {
    const char letter = text_[at_];
    if (is_ascii_digit(letter)) return number();
    if (const std::size_t end = end_of_name(); end > at_) {
      add(TokenKind::name, text_.substr(at_, end - at_));
      return advance(end);
    }
    if (letter == '"' || letter == '\'') return string(letter);
    symbol();
  }

  std::size_t end_of_name() const {
    std::size_t end = at_;
    while (end < text_.size()) {
      const CodePoint point = code_point_at(text_, end);
      if (point.value != '_' && !is_alnum(point.value)) break;
      end += point.bytes;
    }
    return end;
  }

  void number() {
    // In "x.0.5" the digits after a dot are an index, not the start of a fraction.
    const bool after_dot = text_[at_ - 1] == '.';
    const NumberSpelling number = scan_number(std::string_view(text_).substr(at_), after_dot);
    add(number.floating ? TokenKind::floating : TokenKind::integer, text_.substr(at_, number.bytes));
    advance(at_ + number.bytes);
  }

  void string(char quote) {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) refuse("a string is not closed");
    std::string decoded;
    if (const char* problem =
            decode_escapes(decoded, std::string_view(text_).substr(at_ + 1, end - at_ - 1))) {
      refuse(problem);
    }
    add(TokenKind::string, std::move(decoded));
    advance(end + 1);
  }

  void symbol() {
    static constexpr std::array<std::string_view, 27> symbols = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]",
        "(",  ")",  "{",  "}",  ">",  "<",  "=", ".", ":", "|", ",", ";", ""};
    for (const std::string_view candidate : symbols) {
      if (candidate.empty() || !starts(at_, candidate)) continue;
      balance(candidate[0]);
      add(TokenKind::symbol, std::string(candidate));
      return advance(at_ + candidate.size());
    }
    const CodePoint point = code_point_at(text_, at_);
    refuse(fmt::format("unexpected character '{}'", text_.substr(at_, point.bytes)));
  }

  void balance(char letter) {
    if (letter == '(') brackets_ += ')';
    if (letter == '[') brackets_ += ']';
    if (letter == '{') brackets_ += '}';
    if (letter != ')' && letter != ']' && letter != '}') return;
    if (brackets_.empty()) refuse(fmt::format("unexpected '{}'", letter));
    if (brackets_.back() != letter)
      refuse(fmt::format("unexpected '{}', expected '{}'", letter, brackets_.back()));
    brackets_.pop_back();
  }

  std::string text_;
  std::string_view name_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // whether the text at at_ begins a line
  std::string brackets_;       // the closing brackets still to come
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source, std::string_view name) {
  if (const auto bad = utf8::first_invalid(source)) {
    fail(ErrorKind::corrupt, fmt::format("{}: the template is not UTF-8 at byte {}", name, *bad));
  }
  return Lexer(source, name).run();
}

}  // namespace inferno::jinja
