// A model's conversation protocol, both ways: messages into a prompt, tokens into parts of a reply.
// Two implementations: template_format.cpp (the checkpoint's Jinja template) and harmony.cpp.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/token.h"
#include "chat/json.h"
#include "text/tokenizer.h"

namespace inferno {

// Messages and tools as OpenAI's chat API has them: {"role", "content", "tool_calls", …}.
struct Conversation {
  Json messages = Json::array();
  Json tools;                         // null or an array
  std::string reasoning_effort;       // empty: the model's default
  bool add_generation_prompt = true;  // end with the beginning of the assistant's turn
  Json variables;                     // null or an object: further template variables (enable_thinking, …)
};

struct Prompt {
  std::vector<TokenId> tokens;
  std::string text;  // what the tokens stand for, for people
};

struct ContentDelta {
  std::string text;
};
struct ReasoningDelta {
  std::string text;
};
// The first delta of a call has its id and name; arguments follow in pieces.
struct ToolCallDelta {
  int index = 0;
  std::string id, name, arguments;
};
// The reply broke its protocol; what could not be understood came as content.
struct ReplyWarning {
  std::string text;
};
using ReplyPart = std::variant<ContentDelta, ReasoningDelta, ToolCallDelta, ReplyWarning>;

class ReplyParser {  // one for each reply: holds the state between tokens; never throws, never loses text
 public:
  virtual ~ReplyParser() = default;
  virtual std::vector<ReplyPart> push(TokenId token) = 0;
  virtual std::vector<ReplyPart> finish() = 0;
};

// Immutable; may be used from several threads at once.
class ChatFormat {
 public:
  virtual ~ChatFormat() = default;
  virtual std::string name() const = 0;  // for people: "harmony", "chat_template.jinja", "default llama-3", …
  // Error{invalid_request} for a conversation that is not of the form above, Error{unsupported} when the
  // template refuses it; the message is the template's.
  virtual Prompt render(const Conversation& conversation) const = 0;
  virtual std::vector<TokenId> stop_tokens() const = 0;
  // The parser for the reply to this conversation.
  virtual std::unique_ptr<ReplyParser> parser(const Conversation& conversation) const = 0;
};

}  // namespace inferno
