// Lays an edited text out on the screen and produces the bytes that draw it. Needs no terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace inferno::terminal {

struct ScreenSize {
  int columns = 80, rows = 24;
};

struct Prompts {
  std::string first = ">>> ";  // plain text, shown in `style`
  std::string next = "... ";   // before every further line
  std::string style;           // an escape sequence, or empty
};

struct Layout {
  std::vector<std::string> rows;  // prompts included, without line breaks
  std::size_t cursor_row = 0;
  int cursor_column = 0;  // from 0
};

// Breaks the text into rows of the screen. A wide character that does not fit goes to the next row whole.
Layout lay_out(const Prompts& prompts, std::string_view text, std::size_t cursor, int screen_columns);

// How many rows a drawn row takes after the terminal rewrapped it for a narrower window; 1 if it
// still fits. Escape sequences take no columns.
std::size_t reflowed_rows(std::string_view row, int screen_columns);

// Remembers what was drawn and where the cursor was left, so that the next drawing can begin where the last
// did, also if the window was resized in between: terminals break rows that no longer fit.
class LineView {
 public:
  explicit LineView(Prompts prompts) : prompts_(std::move(prompts)) {}

  void set_prompts(Prompts prompts) { prompts_ = std::move(prompts); }

  // Redraws the text. If it is taller than the screen, shows the part around the cursor.
  std::string draw(std::string_view text, std::size_t cursor, ScreenSize size);
  // Draws the whole text a last time and moves the cursor to the start of the next line.
  std::string finish(std::string_view text, ScreenSize size);
  // Call after the screen was cleared: the next draw() starts at the cursor.
  void forget() { above_.clear(); }

 private:
  std::string to_start(int screen_columns) const;

  Prompts prompts_;
  std::vector<std::string> above_;  // the rows drawn above the cursor, and its own row through the cursor
};

}  // namespace inferno::terminal
