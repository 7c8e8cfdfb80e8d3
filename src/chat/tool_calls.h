// Tool calls in a reply that is text: found by the markers of the model's family, or where the reply is a
// JSON object that calls an offered function. Text around the calls is kept; a call that breaks off or is
// none comes back as content with a warning. What comes out does not depend on how the text was cut into
// pieces.
//
// | family            | a call                                                       |
// |-------------------|--------------------------------------------------------------|
// | Qwen, Hermes, Granite 4 | <tool_call>{"name": "f", "arguments": {…}}</tool_call> |
// | Llama 3.x         | {"name": "f", "parameters": {…}} at the beginning, or behind <|python_tag|>; several
// with ; | | Mistral           | [TOOL_CALLS][{"name": "f", "arguments": {…}}] or [TOOL_CALLS]f[ARGS]{…} | |
// Granite 3         | <|tool_call|>[{"name": "f", "arguments": {…}}]               | | Phi-4             |
// <|tool_call|>[…]<|/tool_call|> or functools[…]               |
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "chat/call_ids.h"
#include "chat/call_scanner.h"
#include "chat/reply_parts.h"

namespace inferno {

struct ToolCallSyntax {
  std::vector<std::string_view> opens;   // a call follows
  std::vector<std::string_view> closes;  // may follow a call
  bool json_reply = false;               // a reply that is a call and nothing else has no marker
  bool named = false;                    // f[ARGS]{…} is a call
  bool bare_ids = false;                 // ids of nine letters and digits, nothing else
};

// The syntax of the families whose markers the template mentions.
ToolCallSyntax tool_call_syntax(std::string_view template_source);

// Control tokens that are part of a syntax and hence reach the extractor as text.
bool is_tool_call_marker(std::string_view token);

class ToolCallExtractor {
 public:
  ToolCallExtractor(ToolCallSyntax syntax, const Conversation& conversation);

  void push(std::string_view text, ReplyParts& to);
  void finish(ReplyParts& to);

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
  // What was held for a call is text after all.
  void give_up(ReplyParts& to);

  ToolCallSyntax syntax_;
  std::set<std::string, std::less<>> functions_;
  CallIds ids_;

  State state_ = State::text;
  // In text. Blanks at the beginning and behind a call are content only if text follows.
  bool quiet_ = true;
  bool behind_call_ = false;
  bool marked_ = false;  // behind an opening marker without its closing one
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
