// Tool calls in a reply that is text: found by the markers of the model's family, or because the reply is a
// JSON object that calls an offered function. Text around the calls is kept; a call that is invalid or
// unfinished comes back as content with a warning. The result does not depend on how the text was cut into
// pieces.
//
// | family                  | a call                                                              |
// |-------------------------|---------------------------------------------------------------------|
// | Qwen, Hermes, Granite 4 | <tool_call>{"name": "f", "arguments": {…}}</tool_call>              |
// | Llama 3.x               | {"name": "f", "parameters": {…}} at the start or after              |
// |                         | <|python_tag|>; several are separated by ;                          |
// | Mistral                 | [TOOL_CALLS][{"name": "f", "arguments": {…}}], [TOOL_CALLS]f[ARGS]{…} |
// | Granite 3               | <|tool_call|>[{"name": "f", "arguments": {…}}]                      |
// | Phi-4                   | <|tool_call|>[…]<|/tool_call|> or functools[…]                      |
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "chat/reply/parts.h"

namespace inferno {

struct ToolCallSyntax {
  std::vector<std::string_view> opens;   // a call follows
  std::vector<std::string_view> closes;  // may follow a call
  bool json_reply = false;               // a reply that is only a call has no marker
  bool named = false;                    // f[ARGS]{…} is a call
  bool bare_ids = false;                 // ids without the prefix "call_"
};

// The syntax of the families whose markers the template mentions.
ToolCallSyntax tool_call_syntax(std::string_view template_source);

// Whether a control token is part of a syntax, so that its text must be passed to the extractor.
bool is_tool_call_marker(std::string_view token);

// Scans one tool call as JSON, byte by byte: {"name": "f", "arguments": {…}} with keys in any order; also
// "parameters" for "arguments", and both inside "function". Only brackets and quotes are checked; the text
// between them is passed on unchanged, so the pieces of the arguments are exactly the model's text.
class CallScanner {
 public:
  enum class Status { more, done, invalid };  // invalid: the byte was not consumed

  enum class Keys { any, known };  // known: a key that calls do not have is invalid
  explicit CallScanner(Keys keys = Keys::any) : keys_(keys) {}
  // Only the arguments of a function whose name has been read.
  static CallScanner of_arguments(std::string name);

  Status take(char byte);

  const std::optional<std::string>& name() const { return name_; }
  bool has_arguments() const { return has_arguments_; }
  // The text of the arguments since the previous call of this function.
  std::string take_arguments();

 private:
  enum class State { begin, key_or_end, key, colon, value_begin, value, after_value };
  enum class Role { name, arguments, other };
  // The state inside a value.
  struct Value {
    std::string open;  // the closing brackets still expected
    bool in_string = false, escaped = false, is_scalar = false;
  };
  enum class Step { inside, last, past, invalid };  // past: the byte follows the end of the value

  Status begin_value(char byte);
  Status take_value(char byte);
  Status finish_value();
  Status after_value(char byte);
  Step step(char byte);
  void keep(char byte);

  Keys keys_;
  State state_ = State::begin;
  std::string key_;
  bool key_escaped_ = false;
  Role role_ = Role::other;
  Value value_;
  bool only_arguments_ = false;
  int nested_ = 0;    // levels of "function"
  std::string text_;  // of a value that is decoded once it is complete
  bool decodes_ = false;
  std::optional<std::string> name_;
  bool has_arguments_ = false;
  std::string arguments_;
};

class ToolCallExtractor {
 public:
  ToolCallExtractor(ToolCallSyntax syntax, const Conversation& conversation);

  void push(std::string_view text, ReplyParts& to);
  void finish(ReplyParts& to);
  // Bytes that are content unless they turn out to belong to a call.
  std::size_t held() const { return blanks_.size() + tail_.size() + held_.size(); }

 private:
  enum class State { text, body, name, object, list };

  void take(char byte, ReplyParts& to);
  void take_text(char byte, ReplyParts& to);
  void match_markers(ReplyParts& to);
  void take_body(char byte, ReplyParts& to);
  void take_name(char byte, ReplyParts& to);
  void take_object(char byte, ReplyParts& to);
  void take_list(char byte, ReplyParts& to);
  bool may_begin_object() const;
  void begin_object(CallScanner scanner, bool tentative);
  void announce(ReplyParts& to);
  void send_arguments(ReplyParts& to);
  void end_call(bool complete, ReplyParts& to);
  // Returns the text that was held back for a call.
  void give_up(ReplyParts& to);

  ToolCallSyntax syntax_;
  std::set<std::string, std::less<>> functions_;
  CallIds ids_;

  State state_ = State::text;
  // In text. Blanks at the start and after a call are content only if text follows.
  bool only_blanks_ = true;  // since the start or the last call
  bool after_call_ = false;
  bool marked_ = false;  // after an opening marker, before its closing one
  std::string blanks_;
  std::string tail_;  // may become a marker
  // In a call.
  std::string held_;  // everything since the marker, until a name makes it a call
  std::string name_;
  CallScanner scanner_;
  bool tentative_ = false;  // a JSON reply, which need not be a call
  bool announced_ = false;
  bool in_list_ = false;
  int call_ = -1;
  std::string arguments_;
};

}  // namespace inferno
