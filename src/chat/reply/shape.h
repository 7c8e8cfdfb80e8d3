// The form of the replies to one conversation, as far as a constraint must know it. Plain data, so that a
// constraint can be compiled on another thread.
#pragma once

#include <string>
#include <vector>

#include "chat/reply/text_reply.h"

namespace inferno {

// A control token, or text.
struct ReplyPiece {
  bool is_control = false;
  std::string text;
  bool operator==(const ReplyPiece&) const = default;
};

struct ReplyShape {
  enum class Kind {
    completion,  // text that continues a prompt
    text,        // reasoning between tags, tool calls between markers, and content
    channels,    // Harmony
  };

  Kind kind = Kind::completion;
  // For Kind::text.
  ReasoningTags tags = {};
  ReplyBegins begins = ReplyBegins::anywhere;
  ToolCallSyntax syntax = {};
  // What the prompt already has of the message that the reply continues: its header after the author, or the
  // beginning of its text.
  std::vector<ReplyPiece> begun = {};
};

}  // namespace inferno
