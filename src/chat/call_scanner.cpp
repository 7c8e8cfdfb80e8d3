#include "chat/call_scanner.h"

#include <algorithm>
#include <utility>

#include "chat/json.h"

namespace inferno {
namespace {

bool is_blank(char byte) {
  return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

bool is_scalar(char byte) {
  return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         byte == '+' || byte == '-' || byte == '.';
}

bool is_known(std::string_view key) {
  constexpr std::string_view known[] = {"name", "function", "arguments", "parameters", "type", "id"};
  return std::find(std::begin(known), std::end(known), key) != std::end(known);
}

// nullopt when it is no JSON string.
std::optional<std::string> decoded(const std::string& quoted) {
  const auto value = parse_json_if_valid(quoted);
  return value && value->is_string() ? std::optional(value->get<std::string>()) : std::nullopt;
}

}  // namespace

CallScanner CallScanner::of_arguments(std::string name) {
  CallScanner scanner;
  scanner.name_ = std::move(name);
  scanner.only_arguments_ = true;
  scanner.role_ = Role::arguments;
  scanner.state_ = State::value_begin;
  return scanner;
}

CallScanner::Status CallScanner::take(char byte) {
  switch (state_) {
    case State::begin:
      if (byte != '{') return Status::broken;
      state_ = State::key_or_end;
      return Status::more;
    case State::key_or_end:
      if (is_blank(byte) || byte == ',') return Status::more;
      if (byte == '}') return behind_value(byte);
      if (byte != '"') return Status::broken;
      key_.clear();
      state_ = State::key;
      return Status::more;
    case State::key:
      if (byte == '"' && !key_escaped_) {
        state_ = State::colon;
        return Status::more;
      }
      key_escaped_ = byte == '\\' && !key_escaped_;
      key_ += byte;
      return Status::more;
    case State::colon:
      if (is_blank(byte)) return Status::more;
      if (byte != ':' || (keys_ == Keys::known && !is_known(key_))) return Status::broken;
      state_ = State::value_begin;
      return Status::more;
    case State::value_begin: return is_blank(byte) ? Status::more : begin_value(byte);
    case State::value: return take_value(byte);
    case State::behind_value: return behind_value(byte);
  }
  return Status::broken;
}

CallScanner::Status CallScanner::begin_value(char byte) {
  if (!only_arguments_) {
    role_ = Role::other;
    if ((key_ == "name" || key_ == "function") && byte == '"' && !name_) role_ = Role::name;
    if ((key_ == "arguments" || key_ == "parameters") && !has_arguments_) role_ = Role::arguments;
    if (key_ == "function" && byte == '{') {
      ++nested_;
      state_ = State::key_or_end;
      return Status::more;
    }
  }
  value_ = {};
  text_.clear();
  // Some models write the arguments as a text that holds JSON, or null for none.
  decodes_ = role_ == Role::name || (role_ == Role::arguments && byte != '{' && byte != '[');
  if (byte == '"') {
    value_.in_string = true;
  } else if (byte == '{' || byte == '[') {
    value_.open = byte == '{' ? "}" : "]";
  } else if (is_scalar(byte)) {
    value_.is_scalar = true;
  } else {
    return Status::broken;
  }
  if (role_ == Role::arguments) has_arguments_ = true;
  keep(byte);
  state_ = State::value;
  return Status::more;
}

void CallScanner::keep(char byte) {
  if (decodes_) {
    text_ += byte;
  } else if (role_ == Role::arguments) {
    arguments_ += byte;
  }
}

CallScanner::Step CallScanner::step(char byte) {
  if (value_.in_string) {
    if (value_.escaped) {
      value_.escaped = false;
    } else if (byte == '\\') {
      value_.escaped = true;
    } else if (byte == '"') {
      value_.in_string = false;
      if (value_.open.empty()) return Step::last;
    }
    return Step::inside;
  }
  if (value_.is_scalar) return is_scalar(byte) ? Step::inside : Step::past;
  if (byte == '"') value_.in_string = true;
  if (byte == '{') value_.open += '}';
  if (byte == '[') value_.open += ']';
  if (byte == '}' || byte == ']') {
    if (value_.open.back() != byte) return Step::broken;
    value_.open.pop_back();
    if (value_.open.empty()) return Step::last;
  }
  // Outside of a text JSON has no such letter: it begins the marker that ends the call.
  return byte == '<' ? Step::broken : Step::inside;
}

CallScanner::Status CallScanner::take_value(char byte) {
  switch (step(byte)) {
    case Step::inside: keep(byte); return Status::more;
    case Step::last: keep(byte); return finish_value();
    case Step::past: {
      const Status status = finish_value();
      return status == Status::more ? behind_value(byte) : status;
    }
    case Step::broken: return Status::broken;
  }
  return Status::broken;
}

CallScanner::Status CallScanner::finish_value() {
  if (decodes_) {
    const auto text = decoded(text_);
    if (role_ == Role::name) {
      if (!text || text->empty()) return Status::broken;
      name_ = text;
    } else {
      arguments_ += text ? *text : text_ == "null" ? "{}" : text_;
    }
  }
  state_ = State::behind_value;
  return only_arguments_ ? Status::done : Status::more;
}

CallScanner::Status CallScanner::behind_value(char byte) {
  state_ = State::behind_value;
  if (is_blank(byte)) return Status::more;
  if (byte == ',') {
    state_ = State::key_or_end;
    return Status::more;
  }
  if (byte != '}') return Status::broken;
  if (nested_-- > 0) return Status::more;
  return name_ ? Status::done : Status::broken;
}

std::string CallScanner::take_arguments() {
  return std::exchange(arguments_, {});
}

}  // namespace inferno
