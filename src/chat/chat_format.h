// A model's conversation protocol in both directions: messages into a prompt, tokens into parts of a reply.
// Two implementations: template_format.cpp (the model's Jinja template) and harmony/format.cpp.
#pragma once

#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/token.h"
#include "chat/jinja/template.h"
#include "text/tokenizer.h"

namespace inferno {

struct Conversation;  // conversation.h
struct ReplyShape;    // reply/shape.h

struct Prompt {
  std::vector<TokenId> tokens;  // empty if there are more than asked for
  std::string text;             // the same prompt as text, for display
  bool is_too_long = false;     // more tokens than asked for
  // For the parser of a reply with channels: the header of its first message, as far as the prompt has it;
  // nullopt: the author, "assistant".
  std::optional<std::string> opening = {};
};

struct ContentDelta {
  std::string text;
};
struct ReasoningDelta {
  std::string text;
};
// The first delta of a call has its id and name; its arguments follow in pieces.
struct ToolCallDelta {
  int index = 0;
  std::string id, name, arguments;
};
// The reply violates its protocol; the part that could not be parsed is returned as content.
struct ReplyWarning {
  std::string text;
};
using ReplyPart = std::variant<ContentDelta, ReasoningDelta, ToolCallDelta, ReplyWarning>;

// One per reply: keeps the state between tokens. Never throws and never loses text.
class ReplyParser {
 public:
  virtual ~ReplyParser() = default;
  virtual std::vector<ReplyPart> push(TokenId token) = 0;
  virtual std::vector<ReplyPart> finish() = 0;

  // Whether the bytes of the token are text of the reply; they are not for control tokens that structure it.
  virtual bool is_text(TokenId token) const = 0;
  // How many of the last bytes of text are held back: push() or finish() will return them or drop them.
  virtual std::size_t held() const = 0;
};

struct ChatOptions {
  std::function<std::chrono::local_seconds()> clock = jinja::local_now;  // for prompts that contain the date
  // If false, the text of users is ordinary text even if it spells a control token. If true, it may become
  // one, as with Hugging Face's apply_chat_template.
  bool allow_control_tokens_in_user_text = false;
};

// Immutable; several threads may use it at once.
class ChatFormat {
 public:
  virtual ~ChatFormat() = default;
  // For display: "harmony", "chat_template.jinja", "default llama-3", …
  virtual std::string name() const = 0;
  // Error{invalid_request} for a malformed conversation, Error{unsupported} with the template's message if
  // the template rejects it.
  virtual Prompt render(const Conversation& conversation, std::size_t max_tokens) const = 0;
  Prompt render(const Conversation& conversation) const {
    return render(conversation, std::numeric_limits<std::size_t>::max());
  }
  virtual std::vector<TokenId> stop_tokens() const = 0;
  // The parser for the reply to this conversation, which was rendered to `prompt`.
  virtual std::unique_ptr<ReplyParser> parser(const Conversation& conversation,
                                              const Prompt& prompt) const = 0;
  std::unique_ptr<ReplyParser> parser(const Conversation& conversation) const {
    return parser(conversation, render(conversation));
  }
  // How the reply to this conversation is written, for a constraint on it.
  virtual ReplyShape shape(const Conversation& conversation, const Prompt& prompt) const = 0;
};

}  // namespace inferno
