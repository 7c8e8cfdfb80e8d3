// How the parts of a reply look while they arrive. Pure: parts in, bytes out.
#pragma once

#include <string>

#include "chat/chat_format.h"
#include "cli/terminal/markdown.h"

namespace inferno::play {

struct ViewOptions {
  bool is_terminal = false;  // control characters are shown, not sent
  bool has_colour = false;   // markdown and dim reasoning
  bool shows_reasoning = true;
};

class AnswerView {
 public:
  explicit AnswerView(ViewOptions options) : options_(options) {}

  std::string show(const ReplyPart& part);
  // The rest, styles ended, and a line break where the answer has none.
  std::string finish();

 private:
  std::string content(const std::string& text);
  std::string reasoning(const std::string& text);
  std::string call(const ToolCallDelta& delta);
  std::string end_reasoning();
  std::string new_line();
  std::string safe(const std::string& text) const;

  ViewOptions options_;
  terminal::Markdown markdown_;
  bool is_reasoning_ = false;
  bool is_calling_ = false;
  bool is_at_line_start_ = true;
};

}  // namespace inferno::play
