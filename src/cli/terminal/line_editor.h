// A line editor as a state machine: keys in, text and cursor out. It draws nothing (see line_view.h) and
// needs no terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal/key.h"

namespace inferno::terminal {

enum class Outcome {
  editing,
  submitted,     // text() is what was entered
  interrupted,   // Ctrl-C
  left,          // Ctrl-D on an empty line
  clear_screen,  // Ctrl-L; editing goes on
  suspend        // Ctrl-Z; editing goes on after it
};

// True for a text that begins with """ and has not been closed by another: it goes on in the next line.
bool is_unfinished(std::string_view text);
// The text inside """ … """; any other text as it is.
std::string without_quotes(std::string_view text);

class LineEditor {
 public:
  // `history`, oldest first, is copied: what is changed while walking through it lasts until the line is
  // entered.
  explicit LineEditor(std::vector<std::string> history = {});

  Outcome apply(const Key& key);

  const std::string& text() const { return text_; }
  std::size_t cursor() const { return cursor_; }  // a byte offset between characters

 private:
  Outcome apply_control(char letter);
  Outcome enter();
  void insert(std::string_view text);
  void erase(std::size_t begin, std::size_t end);
  void kill(std::size_t begin, std::size_t end);
  void move_line(bool up);
  void recall(std::size_t entry);

  std::size_t line_begin() const;
  std::size_t line_end() const;
  std::size_t word_left() const;
  std::size_t word_right() const;

  std::string text_;
  std::size_t cursor_ = 0;
  std::string killed_;               // what Ctrl-Y brings back
  std::vector<std::string> drafts_;  // the history, and last the new line
  std::size_t draft_ = 0;
};

}  // namespace inferno::terminal
