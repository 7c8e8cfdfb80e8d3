// Replies of models that answer in text: reasoning between tags, tool calls between markers, all else
// content.
#pragma once

#include <memory>
#include <vector>

#include "chat/chat_format.h"
#include "chat/reasoning_splitter.h"
#include "chat/tool_calls.h"

namespace inferno {

struct TextReplySetup {
  std::vector<TokenId> stop_tokens;  // no text
  ReasoningTags tags;                // empty: no reasoning
  bool begins_inside = false;        // the prompt opened the reasoning
  ToolCallSyntax syntax;
  const Conversation* conversation =
      nullptr;  // needed only while constructing; tools are looked for if it has any
};

// The tokenizer must outlive the result.
std::unique_ptr<ReplyParser> make_text_parser(const Tokenizer& tokenizer, TextReplySetup setup);

}  // namespace inferno
