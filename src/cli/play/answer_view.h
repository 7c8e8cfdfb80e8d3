// How the parts of a reply look while they arrive. Pure: parts in, bytes out.
#pragma once

#include <string>

#include "chat/chat_format.h"
#include "cli/answer.h"
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

// "130 tokens, 812.5 tokens/s, first after 12.3 ms; prompt: 58 tokens, 32 of them cached"
std::string answer_line(const Answer& answer);

struct Tally {
  int answers = 0;
  long prompt_tokens = 0, cached_tokens = 0, written_tokens = 0;
  long decoded_tokens = 0;  // written but for the first of each answer
  double prompt_seconds = 0, decode_seconds = 0;

  void add(const Answer& answer);
};

std::string session_lines(const Tally& tally);

}  // namespace inferno::play
