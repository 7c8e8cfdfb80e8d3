#include "server/anthropic/tool_input.h"

#include <fmt/format.h>

#include <algorithm>

namespace inferno::server {
namespace {

constexpr std::size_t max_depth = 200;  // below the limits of common parsers

bool is_blank(char byte) {
  return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

bool is_digit(char byte) {
  return byte >= '0' && byte <= '9';
}

bool is_hex(char byte) {
  return is_digit(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}

std::string escaped(char byte) {
  switch (byte) {
    case '\n': return "\\n";
    case '\t': return "\\t";
    case '\r': return "\\r";
    default: return fmt::format("\\u{:04x}", static_cast<unsigned>(byte));
  }
}

}  // namespace

std::string ToolInput::push(std::string_view piece) {
  written_ += piece;
  std::string out;
  for (const char byte : piece) {
    const bool is_control = state_ == State::in_string && byte >= 0 && byte < 0x20;
    is_broken_ = is_broken_ || (!is_control && !take(byte));
    if (is_broken_) break;
    ++used_;
    // Blanks alone are no beginning that Anthropic's client can parse.
    if (state_ != State::begin) out += is_control ? escaped(byte) : std::string(1, byte);
  }
  sent_ += out;
  return out;
}

std::optional<Json> ToolInput::object() const {
  if (state_ != State::done) return std::nullopt;
  // A full parser also finds half of a surrogate pair. Large numbers lose digits, as they do in clients.
  return parse_json_if_valid(sent_, LargeIntegers::round);
}

Json ToolInput::value() const {
  return object().value_or(Json::object());
}

std::string ToolInput::rest() const {
  std::string rest = object() ? written_.substr(used_) : written_;
  return std::ranges::all_of(rest, is_blank) ? "" : rest;
}

bool ToolInput::go(State state) {
  state_ = state;
  return true;
}

bool ToolInput::take(char byte) {
  switch (state_) {
    case State::in_string:
    case State::escape:
    case State::hex: return take_string(byte);
    case State::number: return take_number(byte);
    case State::word:
      if (word_.front() != byte) return false;
      word_.erase(0, 1);
      return !word_.empty() || go(State::after_value);
    case State::begin:
    case State::first_key:
    case State::key:
    case State::colon:
    case State::first_value:
    case State::value:
    case State::after_value:
    case State::done: break;
  }
  return is_blank(byte) || take_structure(byte);
}

bool ToolInput::take_structure(char byte) {
  switch (state_) {
    case State::begin: return byte == '{' && open(byte);
    case State::first_key: return byte == '}' ? close(byte) : byte == '"' && begin_string(/*is_key=*/true);
    case State::key: return byte == '"' && begin_string(/*is_key=*/true);
    case State::colon: return byte == ':' && go(State::value);
    case State::first_value: return byte == ']' ? close(byte) : begin_value(byte);
    case State::value: return begin_value(byte);
    case State::after_value:
      if (byte != ',') return close(byte);
      return go(open_.back() == '{' ? State::key : State::value);
    case State::in_string:
    case State::escape:
    case State::hex:
    case State::number:
    case State::word:
    case State::done: break;
  }
  return false;
}

bool ToolInput::take_string(char byte) {
  if (state_ == State::hex) {
    if (!is_hex(byte)) return false;
    return --hex_digits_ > 0 || go(State::in_string);
  }
  if (state_ == State::escape) {
    if (byte != 'u') {
      return std::string_view("\"\\/bfnrt").find(byte) != std::string_view::npos && go(State::in_string);
    }
    hex_digits_ = 4;
    return go(State::hex);
  }
  if (byte == '\\') return go(State::escape);
  return byte != '"' || go(is_key_ ? State::colon : State::after_value);
}

// The parts of a number: '-' its sign, '0' a leading zero, '1' digits, '.' the point, 'f' digits after it,
// 'e' the exponent's letter, 's' its sign, 'x' its digits.
bool ToolInput::take_number(char byte) {
  const auto next = [&](char part) {
    number_ = part;
    return true;
  };
  const bool has_integer = number_ == '0' || number_ == '1';
  if (is_digit(byte)) {
    if (number_ == '-') return next(byte == '0' ? '0' : '1');
    if (number_ == '.') return next('f');
    if (number_ == 'e' || number_ == 's') return next('x');
    return number_ != '0';
  }
  if (byte == '.' && has_integer) return next('.');
  if ((byte == 'e' || byte == 'E') && (has_integer || number_ == 'f')) return next('e');
  if ((byte == '+' || byte == '-') && number_ == 'e') return next('s');
  const bool is_whole = has_integer || number_ == 'f' || number_ == 'x';
  return is_whole && go(State::after_value) && take(byte);
}

bool ToolInput::begin_value(char byte) {
  switch (byte) {
    case '{':
    case '[': return open(byte);
    case '"': return begin_string(/*is_key=*/false);
    case 't': word_ = "rue"; return go(State::word);
    case 'f': word_ = "alse"; return go(State::word);
    case 'n': word_ = "ull"; return go(State::word);
    default: break;
  }
  if (byte != '-' && !is_digit(byte)) return false;
  number_ = byte == '-' || byte == '0' ? byte : '1';
  return go(State::number);
}

bool ToolInput::begin_string(bool is_key) {
  is_key_ = is_key;
  return go(State::in_string);
}

bool ToolInput::open(char bracket) {
  if (open_.size() == max_depth) return false;
  open_ += bracket;
  return go(bracket == '{' ? State::first_key : State::first_value);
}

bool ToolInput::close(char bracket) {
  if (bracket != (open_.back() == '{' ? '}' : ']')) return false;
  open_.pop_back();
  return go(open_.empty() ? State::done : State::after_value);
}

}  // namespace inferno::server
