// Breaks text at word borders while it streams, so that no word is cut at the edge of the screen. Holds back
// the last word until it is known whether it fits.
#pragma once

#include <string>
#include <string_view>

namespace inferno::terminal {

// The text must be free of control characters except line breaks and tabs: see printable().
class WordWrap {
 public:
  // 0 columns: lines are not broken.
  explicit WordWrap(int screen_columns = 0) : columns_(screen_columns) {}
  void resize(int screen_columns) { columns_ = screen_columns; }

  void push(std::string_view text);
  // An escape sequence, which takes no columns.
  void style(std::string_view sequence);
  // The rest of the current line is not broken: a line of code or of a table.
  void keep_line();
  // What was decided since the last call.
  std::string take();
  // All that was held back, too. The next push() begins a new text.
  std::string finish();

 private:
  void end_line();
  void place_decided();
  void place_word();
  void place(std::string_view piece);
  int indent() const;

  int columns_;
  std::string out_;
  std::string line_;    // the beginning of the line, which decides about the indent
  std::string spaces_;  // before the word
  std::string word_;    // with the escape sequences inside
  int column_ = 0;
  bool has_text_ = false;  // the row has more than blanks
  bool is_kept_ = false;   // the line is not broken
  bool is_glued_ = false;  // the word goes on where its first piece ended
  bool was_wide_ = false;  // the character before the word is wide
};

// A whole text at once.
std::string wrapped(std::string_view text, int screen_columns);

}  // namespace inferno::terminal
