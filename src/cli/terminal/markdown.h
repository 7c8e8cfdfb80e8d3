// Colours simple markdown while it streams: headings, emphasis, code, fences, lists, quotes. It only inserts
// escape sequences between characters: without them the output equals the input, byte for byte.
#pragma once

#include <string>
#include <string_view>

namespace inferno::terminal {

// The text must be free of control characters already: see printable().
class Markdown {
 public:
  // Returns what can be shown now and holds a few characters back that might be a mark (`**`, "## ", "```").
  std::string push(std::string_view text);
  // Returns the rest, with all styles reset; the next push() starts a new text.
  std::string finish();

 private:
  enum class Line { undecided, text, heading, code, fence };

  void take(char byte);
  Line kind_of_line() const;
  Line kind_of_mark(std::string_view mark) const;
  void begin_line(Line kind);
  void take_inline(char byte);
  void end_run(char next);
  void end_code_run();
  void end_emphasis_run(char next);
  void end_line();
  void restyle();
  void show(std::string_view text);

  std::string out_;
  std::string held_;  // the undecided beginning of a line, or a run of one mark
  Line line_ = Line::undecided;
  std::string fence_;  // the run that opened the current code block
  std::string code_;   // the run that opened the current inline code
  bool bold_ = false, italic_ = false;
  char before_ = ' ';  // the last character shown in the line
  bool styled_ = false;
};

}  // namespace inferno::terminal
