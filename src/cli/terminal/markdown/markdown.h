// Shows simple markdown while it streams: headings, emphasis, code, lists, quotes, links and tables, broken
// at word borders. Besides line breaks within paragraphs and blanks that align tables it only inserts escape
// sequences between characters: the text that is seen is the text that was written.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal/markdown/highlight.h"
#include "cli/terminal/markdown/theme.h"
#include "cli/terminal/markdown/word_wrap.h"

namespace inferno::terminal {

// The text must be free of control characters already: see printable().
class Markdown {
 public:
  // 0 columns: no line is broken.
  explicit Markdown(const Theme& theme = terminal_theme, int screen_columns = 0)
      : theme_(theme), out_(screen_columns), columns_(screen_columns) {}
  void resize(int screen_columns);

  // Returns what can be shown now. Holds back what may be a mark (`**`, "## ", "```", "[") or the last word
  // of a row, a line of code in a language that is known, and a table until it ends.
  std::string push(std::string_view text);
  // Returns the rest, with all styles reset; the next push() starts a new text.
  std::string finish();

 private:
  enum class Line { undecided, text, heading, code, fence, table };

  void take(char byte);
  Line kind_of_line() const;
  Line kind_of_mark(std::string_view mark) const;
  void begin_line(Line kind);
  void take_inline(char byte);
  void take_link(char byte);
  void release_link();
  void end_run(char next);
  void end_code_run();
  void end_emphasis_run(char next);
  void end_line();
  void end_fence();
  void end_table_row();
  void show_table();
  void restyle();
  void style(std::string_view sequence);
  void show(std::string_view text);

  Theme theme_;
  WordWrap out_;
  int columns_;
  std::string held_;  // the undecided beginning of a line, or a run of one mark
  Line line_ = Line::undecided;
  std::string fence_;      // the run that opened the current code block
  std::string kept_line_;  // a line of highlighted code, of a table, or after the run of a fence
  std::optional<Highlighter> highlighter_;
  std::vector<std::string> table_;  // rows, with their line breaks, that wait for the end of their table
  std::string code_;                // the run that opened the current inline code
  std::string link_;                // "[text](addr" so far
  bool is_title_ = false;           // the first row of a table
  bool bold_ = false, italic_ = false;
  char before_ = ' ';  // the last character shown in the line
  bool styled_ = false;
};

}  // namespace inferno::terminal
