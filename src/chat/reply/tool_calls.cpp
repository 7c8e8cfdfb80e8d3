#include "chat/reply/tool_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "chat/json.h"

namespace inferno {
namespace {

constexpr std::size_t max_name_bytes = 512;

bool is_blank(char byte) {
  return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           byte == '_' || byte == '-' || byte == '.' || byte == '/' || byte == ':';
  });
}

bool mentions(std::string_view source, std::string_view marker) {
  return source.find(marker) != std::string_view::npos;
}

// The f of "f[ARGS]" or "f[CALL_ID]123456789[ARGS]"; empty for other texts.
std::string_view function_name(std::string_view text) {
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  if (text.ends_with("[ARGS]")) text.remove_suffix(6);
  text = text.substr(0, text.find("[CALL_ID]"));
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return is_name(text) ? text : std::string_view{};
}

bool is_scalar(char byte) {
  return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         byte == '+' || byte == '-' || byte == '.';
}

bool is_known(std::string_view key) {
  constexpr std::string_view known[] = {"name", "function", "arguments", "parameters", "type", "id"};
  return std::find(std::begin(known), std::end(known), key) != std::end(known);
}

// nullopt if the text is not a JSON string.
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
      if (byte != '{') return Status::invalid;
      state_ = State::key_or_end;
      return Status::more;
    case State::key_or_end:
      if (is_blank(byte) || byte == ',') return Status::more;
      if (byte == '}') return after_value(byte);
      if (byte != '"') return Status::invalid;
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
      if (byte != ':' || (keys_ == Keys::known && !is_known(key_))) return Status::invalid;
      state_ = State::value_begin;
      return Status::more;
    case State::value_begin: return is_blank(byte) ? Status::more : begin_value(byte);
    case State::value: return take_value(byte);
    case State::after_value: return after_value(byte);
  }
  return Status::invalid;
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
  // Some models write the arguments as a string that contains JSON, or as null.
  decodes_ = role_ == Role::name || (role_ == Role::arguments && byte != '{' && byte != '[');
  if (byte == '"') {
    value_.in_string = true;
  } else if (byte == '{' || byte == '[') {
    value_.open = byte == '{' ? "}" : "]";
  } else if (is_scalar(byte)) {
    value_.is_scalar = true;
  } else {
    return Status::invalid;
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
    if (value_.open.back() != byte) return Step::invalid;
    value_.open.pop_back();
    if (value_.open.empty()) return Step::last;
  }
  // JSON has no such character outside of strings: it begins the marker that ends the call.
  return byte == '<' ? Step::invalid : Step::inside;
}

CallScanner::Status CallScanner::take_value(char byte) {
  switch (step(byte)) {
    case Step::inside: keep(byte); return Status::more;
    case Step::last: keep(byte); return finish_value();
    case Step::past: {
      const Status status = finish_value();
      return status == Status::more ? after_value(byte) : status;
    }
    case Step::invalid: return Status::invalid;
  }
  return Status::invalid;
}

CallScanner::Status CallScanner::finish_value() {
  if (decodes_) {
    const auto text = decoded(text_);
    if (role_ == Role::name) {
      if (!text || text->empty()) return Status::invalid;
      name_ = text;
    } else {
      arguments_ += text ? *text : text_ == "null" ? "{}" : text_;
    }
  }
  state_ = State::after_value;
  return only_arguments_ ? Status::done : Status::more;
}

CallScanner::Status CallScanner::after_value(char byte) {
  state_ = State::after_value;
  if (is_blank(byte)) return Status::more;
  if (byte == ',') {
    state_ = State::key_or_end;
    return Status::more;
  }
  if (byte != '}') return Status::invalid;
  if (nested_-- > 0) return Status::more;
  return name_ ? Status::done : Status::invalid;
}

std::string CallScanner::take_arguments() {
  return std::exchange(arguments_, {});
}

ToolCallSyntax tool_call_syntax(std::string_view source) {
  ToolCallSyntax syntax;
  if (mentions(source, "[TOOL_CALLS]")) {
    syntax.opens.push_back("[TOOL_CALLS]");
    syntax.named = true;
    syntax.bare_ids = true;
  }
  if (mentions(source, "<tool_call>")) {
    syntax.opens.push_back("<tool_call>");
    syntax.closes.push_back("</tool_call>");
  }
  if (mentions(source, "<|tool_call|>")) {
    syntax.opens.push_back("<|tool_call|>");
    syntax.closes.insert(syntax.closes.end(), {"<|/tool_call|>", "<|end_of_tool_call|>"});
  }
  if (mentions(source, "functools") || (mentions(source, "<|tool|>") && mentions(source, "<|/tool|>"))) {
    syntax.opens.push_back("functools[");
  }
  const bool is_llama = mentions(source, "<|start_header_id|>") && mentions(source, "tools");
  if (mentions(source, "<|python_tag|>") || (is_llama && syntax.opens.empty())) {
    syntax.opens.push_back("<|python_tag|>");
    syntax.json_reply = true;
  }
  return syntax;
}

bool is_tool_call_marker(std::string_view token) {
  constexpr std::string_view markers[] = {"[TOOL_CALLS]",   "[ARGS]",         "[CALL_ID]",
                                          "<tool_call>",    "</tool_call>",   "<|tool_call|>",
                                          "<|/tool_call|>", "<|python_tag|>", "<|end_of_tool_call|>"};
  return std::find(std::begin(markers), std::end(markers), token) != std::end(markers);
}

ToolCallExtractor::ToolCallExtractor(ToolCallSyntax syntax, const Conversation& conversation)
    : syntax_(std::move(syntax)), functions_(offered_functions(conversation)), ids_(conversation) {}

void ToolCallExtractor::push(std::string_view text, ReplyParts& to) {
  for (const char byte : text) take(byte, to);
}

void ToolCallExtractor::finish(ReplyParts& to) {
  if (state_ == State::object && announced_) end_call(/*complete=*/false, to);
  if (state_ == State::list && announced_) {
    to.warning("the model did not finish a list of tool calls");
  } else if (state_ != State::text) {
    give_up(to);
  }
  if (call_ < 0) to.content(blanks_);
  to.content(tail_);
  blanks_.clear();
  tail_.clear();
}

void ToolCallExtractor::take(char byte, ReplyParts& to) {
  switch (state_) {
    case State::text: take_text(byte, to); return;
    case State::body: take_body(byte, to); return;
    case State::name: take_name(byte, to); return;
    case State::object: take_object(byte, to); return;
    case State::list: take_list(byte, to); return;
  }
}

bool ToolCallExtractor::may_begin_object() const {
  return only_blanks_ && (syntax_.json_reply || (marked_ && after_call_));
}

void ToolCallExtractor::take_text(char byte, ReplyParts& to) {
  if (only_blanks_ && tail_.empty()) {
    const bool separates = after_call_ && (syntax_.json_reply || marked_) && (byte == ';' || byte == ',');
    if (is_blank(byte) || separates) {
      blanks_ += byte;
      return;
    }
    if (byte == '{' && may_begin_object()) {
      held_ = std::exchange(blanks_, {});
      begin_object(CallScanner(marked_ ? CallScanner::Keys::any : CallScanner::Keys::known),
                   /*tentative=*/!marked_);
      take_object(byte, to);
      return;
    }
  }
  tail_ += byte;
  match_markers(to);
}

void ToolCallExtractor::match_markers(ReplyParts& to) {
  while (!tail_.empty()) {
    const auto begins = [&](std::string_view marker) { return marker.starts_with(tail_); };
    const auto is_whole = [&](std::string_view marker) { return marker == tail_; };
    if (std::any_of(syntax_.opens.begin(), syntax_.opens.end(), is_whole)) {
      in_list_ = tail_.ends_with('[');
      state_ = in_list_ ? State::list : State::body;
      held_ = std::exchange(blanks_, {}) + std::exchange(tail_, {});
      marked_ = true;
      tentative_ = announced_ = false;
      return;
    }
    const bool closes = after_call_ && only_blanks_;
    if (closes && std::any_of(syntax_.closes.begin(), syntax_.closes.end(), is_whole)) {
      tail_.clear();
      blanks_.clear();
      marked_ = false;
      return;
    }
    if (std::any_of(syntax_.opens.begin(), syntax_.opens.end(), begins)) return;
    if (closes && std::any_of(syntax_.closes.begin(), syntax_.closes.end(), begins)) return;
    to.content(std::exchange(blanks_, {}));
    to.content(tail_.substr(0, 1));
    tail_.erase(0, 1);
    only_blanks_ = after_call_ = marked_ = false;
  }
}

void ToolCallExtractor::take_body(char byte, ReplyParts& to) {
  if (is_blank(byte)) {
    held_ += byte;
  } else if (byte == '{') {
    begin_object(CallScanner(), /*tentative=*/false);
    take_object(byte, to);
  } else if (byte == '[') {
    held_ += byte;
    in_list_ = true;
    state_ = State::list;
  } else if (syntax_.named && is_name(std::string_view(&byte, 1))) {
    name_.clear();
    state_ = State::name;
    take_name(byte, to);
  } else {
    give_up(to);
    take_text(byte, to);
  }
}

void ToolCallExtractor::take_name(char byte, ReplyParts& to) {
  if (byte == '{') {
    if (const std::string_view name = function_name(name_); !name.empty()) {
      begin_object(CallScanner::of_arguments(std::string(name)), /*tentative=*/false);
      announce(to);
      take_object(byte, to);
      return;
    }
  }
  const bool fits = is_name(std::string_view(&byte, 1)) || is_blank(byte) || byte == '[' || byte == ']';
  if (!fits || name_.size() >= max_name_bytes) {
    give_up(to);
    take_text(byte, to);
    return;
  }
  name_ += byte;
  held_ += byte;
}

void ToolCallExtractor::begin_object(CallScanner scanner, bool tentative) {
  scanner_ = std::move(scanner);
  tentative_ = tentative;
  announced_ = false;
  state_ = State::object;
}

void ToolCallExtractor::take_object(char byte, ReplyParts& to) {
  const CallScanner::Status status = scanner_.take(byte);
  if (!announced_ && status != CallScanner::Status::invalid) held_ += byte;
  if (!announced_ && scanner_.name()) {
    if (tentative_ && !functions_.contains(*scanner_.name())) {
      give_up(to);
      if (status == CallScanner::Status::invalid) take_text(byte, to);
      return;
    }
    announce(to);
  }
  if (announced_) send_arguments(to);
  if (status == CallScanner::Status::more) return;
  if (status == CallScanner::Status::done) {
    end_call(/*complete=*/true, to);
    return;
  }
  if (announced_) {
    end_call(/*complete=*/false, to);
  } else {
    give_up(to);
  }
  take(byte, to);
}

void ToolCallExtractor::take_list(char byte, ReplyParts& to) {
  if (byte == '{') {
    begin_object(CallScanner(), /*tentative=*/false);
    take_object(byte, to);
  } else if (is_blank(byte) || byte == ',') {
    held_ += byte;
  } else if (byte == ']' && announced_) {
    held_.clear();
    in_list_ = false;
    state_ = State::text;
  } else {
    give_up(to);
    take_text(byte, to);
  }
}

void ToolCallExtractor::announce(ReplyParts& to) {
  announced_ = true;
  held_.clear();
  arguments_.clear();
  ++call_;
  const std::string& name = *scanner_.name();
  to.open_call(call_, ids_.make(call_, syntax_.bare_ids), name);
  if (!functions_.contains(name)) {
    to.warning(fmt::format("the model called \"{}\", which was not offered", name));
  }
}

void ToolCallExtractor::send_arguments(ReplyParts& to) {
  const std::string piece = scanner_.take_arguments();
  arguments_ += piece;
  to.arguments(call_, piece);
}

void ToolCallExtractor::end_call(bool complete, ReplyParts& to) {
  if (!complete) {
    to.warning("the model did not finish a tool call");
  } else if (!scanner_.has_arguments()) {
    to.arguments(call_, "{}");
  } else if (!Json::accept(arguments_)) {
    to.warning("the arguments of a tool call are not valid JSON");
  }
  if (!complete) in_list_ = false;
  state_ = in_list_ ? State::list : State::text;
  only_blanks_ = after_call_ = true;
  tentative_ = false;
}

void ToolCallExtractor::give_up(ReplyParts& to) {
  if (!tentative_) to.warning("the model wrote an invalid tool call, returned as text");
  to.content(std::exchange(held_, {}));
  state_ = State::text;
  only_blanks_ = after_call_ = marked_ = in_list_ = tentative_ = false;
}

}  // namespace inferno
