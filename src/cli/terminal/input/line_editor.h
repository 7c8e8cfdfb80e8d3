// A line editor as a state machine: keys in, text and cursor out. LineView draws it; tests need no terminal.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal/input/history_search.h"
#include "cli/terminal/input/key.h"

namespace inferno::terminal {

enum class Outcome {
  editing,
  submitted,     // text() is complete
  interrupted,   // Ctrl-C
  left,          // Ctrl-D on an empty line
  clear_screen,  // Ctrl-L; editing continues
  list,          // Tab twice: candidates() are to be listed; editing continues
  suspend        // Ctrl-Z; editing continues afterwards
};

// True for a text, or an argument of a /command, that begins with """ without a closing """: it continues on
// the next line.
bool is_unfinished(std::string_view text);
// Removes the enclosing """; any other text is returned unchanged.
std::string without_quotes(std::string_view text);

// A text that can stand in the place of what was typed.
struct Candidate {
  std::string text;      // replaces the text from Completion::begin to the cursor
  std::string ending{};  // follows if this is the only candidate: a space, or nothing after a folder
  std::string shown{};   // in a list; empty: `text`
};

struct Completion {
  std::size_t begin = 0;
  std::vector<Candidate> candidates;  // sorted; none: nothing is known to begin so
};

// Completes the text before the cursor. nullopt where nothing can be completed and Tab inserts a tab.
using Completer = std::function<std::optional<Completion>(std::string_view before_cursor)>;

class LineEditor {
 public:
  // `history`, oldest first, is copied: edits to recalled entries last until the line is submitted.
  explicit LineEditor(std::vector<std::string> history = {}, Completer completer = {});
  LineEditor(const LineEditor&) = delete;  // a search refers to the drafts
  LineEditor& operator=(const LineEditor&) = delete;

  Outcome apply(const Key& key);

  const std::string& text() const { return text_; }
  std::size_t cursor() const { return cursor_; }  // a byte offset between characters
  // Instead of the usual prompt, while the history is searched.
  std::optional<std::string> search_prompt() const;
  const std::vector<Candidate>& candidates() const { return candidates_; }

 private:
  Outcome apply_control(char letter);
  // nullopt if the key ended the search and means what it always does.
  std::optional<Outcome> apply_to_search(const Key& key);
  void begin_search();
  void show_match();
  Outcome complete();
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

  Completer completer_;
  std::vector<Candidate> candidates_;  // of the last Tab
  bool may_list_ = false;              // the last key was Tab

  struct Search {
    HistorySearch found;
    std::string text;  // what Ctrl-G brings back
    std::size_t cursor = 0, draft = 0;
  };
  std::optional<Search> search_;
};

}  // namespace inferno::terminal
