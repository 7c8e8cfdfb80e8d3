// A line editor as a state machine: keys in, text and cursor out. LineView draws it; tests need no terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal/key.h"

namespace inferno::terminal {

enum class Outcome {
  editing,
  submitted,     // text() is complete
  interrupted,   // Ctrl-C
  left,          // Ctrl-D on an empty line
  clear_screen,  // Ctrl-L; editing continues
  suspend        // Ctrl-Z; editing continues afterwards
};

// True for a text that begins with """ without a closing """: it continues on the next line.
bool is_unfinished(std::string_view text);
// Removes the enclosing """; any other text is returned unchanged.
std::string without_quotes(std::string_view text);

class LineEditor {
 public:
  // `history`, oldest first, is copied: edits to recalled entries last until the line is submitted.
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
  std::string killed_;               // what Ctrl-Y inserts
  std::vector<std::string> drafts_;  // the history, then the new line
  std::size_t draft_ = 0;
};

}  // namespace inferno::terminal
