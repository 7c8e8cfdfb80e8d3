// Replies of models that answer in plain text: reasoning between tags, tool calls between markers, and
// content.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chat/chat_format.h"
#include "chat/reply/tool_calls.h"

namespace inferno {

struct ReasoningTags {
  std::string_view open, close;
};

// Where the text of a reply begins.
enum class ReplyBegins {
  anywhere,          // with the opening tag or with content
  inside_reasoning,  // the prompt has the opening tag
  in_content,        // the prompt has the beginning of the content: tags are text
};

// Splits a reply at <think>…</think> (or [THINK]…[/THINK]): the text between the tags is reasoning. The
// opening tag counts only at the start of the reply, because later it is something the model talks about;
// many templates write it themselves, so that the reply begins inside. Line breaks next to the tags belong to
// them.
class ReasoningSplitter {
 public:
  // Without tags the whole reply is content.
  ReasoningSplitter(ReasoningTags tags, ReplyBegins begins);

  struct Split {
    std::string reasoning, content;  // in this order
  };
  Split push(std::string_view text);
  Split finish();
  std::size_t held() const { return held_.size(); }  // bytes

 private:
  enum class State { before, inside, after, content };
  void take(char byte, Split& split);
  void take_before(char byte, Split& split);
  void take_inside(char byte, Split& split);

  ReasoningTags tags_;
  ReplyBegins begins_;
  State state_;
  std::string held_;       // the start of a tag, perhaps, with the line breaks before it
  bool has_text_ = false;  // reasoning has been returned
};

struct TextReplySetup {
  std::vector<TokenId> stop_tokens;  // not part of the text
  ReasoningTags tags;                // empty: no reasoning
  ReplyBegins begins = ReplyBegins::anywhere;
  ToolCallSyntax syntax;
  // Used only during construction. Tool calls are recognised if the conversation offers tools.
  const Conversation* conversation = nullptr;
};

// The tokenizer must outlive the result.
std::unique_ptr<ReplyParser> make_text_parser(const Tokenizer& tokenizer, TextReplySetup setup);

}  // namespace inferno
