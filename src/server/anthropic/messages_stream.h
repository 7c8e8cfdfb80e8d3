// The events of a streamed message, and the message that they add up to: a response that is not streamed is
// made of the same events, so that both are the same answer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/chat_format.h"
#include "chat/json.h"
#include "server/anthropic/tool_input.h"
#include "service/answer.h"

namespace inferno::server {

enum class ThinkingDisplay {
  shown,
  omitted,  // empty blocks whose signature carries the text
  none      // no blocks
};

// The "signature" of a thinking block. Clients return only blocks that have one.
std::string thinking_signature(std::string_view thinking, ThinkingDisplay display);
// The text that a signature of a block without text carries; empty if it carries none.
std::string thinking_in(std::string_view signature);

class MessageEvents {
 public:
  struct Setup {
    std::string id, model;
    ThinkingDisplay thinking = ThinkingDisplay::shown;
    int prompt_tokens = 0;
    bool single_call = false;  // further calls are left out
  };
  explicit MessageEvents(Setup setup) : setup_(std::move(setup)) {}

  // Each returns the events in their order; an event's name is its "type".
  std::vector<Json> add(const std::vector<ReplyPart>& parts);
  std::vector<Json> finish(const Answer& answer);

 private:
  enum class Block { none, thinking, text, tool_use };

  void begin();
  void open(Block block, Json content);
  void delta(Json delta);
  // The text of a call that is not JSON follows its block: a text block is open then.
  void close();
  void close_all();
  void add_text(const std::string& text);
  void add_thinking(const std::string& text);
  void add_call(const ToolCallDelta& call);

  Setup setup_;
  std::vector<Json> events_;
  bool has_begun_ = false;
  Block block_ = Block::none;
  int index_ = -1;        // of the open block or the last one
  int call_ = -1;         // number of the open call or the last one
  std::string thinking_;  // of the open block
  ToolInput input_;       // of the open block
};

// Adds events up to a whole message.
class MessageSum {
 public:
  void add(const Json& event);
  Json& message() { return message_; }

 private:
  Json message_;
  std::string input_;  // the pieces of the open block's input
};

}  // namespace inferno::server
