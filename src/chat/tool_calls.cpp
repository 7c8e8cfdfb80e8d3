#include "chat/tool_calls.h"

#include <fmt/format.h>

#include <algorithm>

namespace inferno {
namespace {

constexpr std::size_t longest_name = 512;

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

// "f[ARGS]" or "f[CALL_ID]123456789[ARGS]"; empty when it is neither.
std::string_view function_name(std::string_view text) {
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  if (text.ends_with("[ARGS]")) text.remove_suffix(6);
  text = text.substr(0, text.find("[CALL_ID]"));
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return is_name(text) ? text : std::string_view{};
}

}  // namespace

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
    to.warning("the model broke off a list of tool calls");
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
  return quiet_ && (syntax_.json_reply || (marked_ && behind_call_));
}

void ToolCallExtractor::take_text(char byte, ReplyParts& to) {
  if (quiet_ && tail_.empty()) {
    const bool separates = behind_call_ && (syntax_.json_reply || marked_) && (byte == ';' || byte == ',');
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
    const bool closes = behind_call_ && quiet_;
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
    quiet_ = behind_call_ = marked_ = false;
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
  if (!fits || name_.size() >= longest_name) {
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
  if (!announced_ && status != CallScanner::Status::broken) held_ += byte;
  if (!announced_ && scanner_.name()) {
    if (tentative_ && !functions_.contains(*scanner_.name())) {
      give_up(to);
      if (status == CallScanner::Status::broken) take_text(byte, to);
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
    to.warning("the model broke off a tool call");
  } else if (!scanner_.has_arguments()) {
    to.arguments(call_, "{}");
  } else if (!Json::accept(arguments_)) {
    to.warning("the arguments of a tool call are not valid JSON");
  }
  if (!complete) in_list_ = false;
  state_ = in_list_ ? State::list : State::text;
  quiet_ = behind_call_ = true;
  tentative_ = false;
}

void ToolCallExtractor::give_up(ReplyParts& to) {
  if (!tentative_) to.warning("the model began a tool call that is none");
  to.content(std::exchange(held_, {}));
  state_ = State::text;
  quiet_ = behind_call_ = marked_ = in_list_ = tentative_ = false;
}

}  // namespace inferno
