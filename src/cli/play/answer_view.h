// How an answer looks: its parts while they arrive, and its statistics. Produces bytes and writes nothing.
#pragma once

#include <string>

#include "chat/chat_format.h"
#include "cli/terminal/markdown/markdown.h"
#include "service/answer.h"

namespace inferno::play {

struct ViewOptions {
  bool is_terminal = false;  // control characters are escaped
  bool is_rendered = false;  // markdown is shown as such, and lines are broken at word borders
  bool has_colour = false;   // coloured markdown, dim reasoning
  bool shows_reasoning = true;
  int columns = 0;  // of the screen; 0: lines are not broken
};

class AnswerView {
 public:
  explicit AnswerView(ViewOptions options);

  // The screen has another width from here on.
  void resize(int columns);

  std::string show(const ReplyPart& part);
  // The rest, with styles reset and a line break if the answer does not end with one.
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
  terminal::WordWrap reasoning_;
  bool is_reasoning_ = false;
  bool is_calling_ = false;
  bool is_at_line_start_ = true;
};

// How much of the context a conversation takes.
struct ContextUse {
  std::size_t tokens = 0, limit = 0;

  bool is_nearly_full() const { return tokens * 5 >= limit * 4; }
  std::string text() const;  // "1,214 of 2,048"
};

// "130 tokens, 812.5 tokens/s, first token after 12.3 ms; prompt: 58 tokens, 32 cached; context: 188 of
// 2,048"
std::string answer_line(const Answer& answer, const ContextUse& context);

// The sums of a session.
struct SessionStats {
  int answers = 0;
  long prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
  long decoded_tokens = 0;  // generated tokens except the first of each answer, which prefill produces
  double prompt_seconds = 0, decode_seconds = 0;

  void add(const Answer& answer);
};

std::string session_lines(const SessionStats& stats);

}  // namespace inferno::play
