// How an edited text lies on the screen, and the bytes that draw it. Pure: sizes in, bytes out.
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
  std::string first = ">>> ";  // plain text; `style` is put around it
  std::string next = "... ";   // before every further line
  std::string style;           // an escape sequence, or empty for none
};

struct Layout {
  std::vector<std::string> rows;  // prompts included, without line breaks
  std::size_t cursor_row = 0;
  int cursor_column = 0;  // from 0
};

// Breaks the text into rows of the screen. A wide character that does not fit goes to the next row whole.
Layout lay_out(const Prompts& prompts, std::string_view text, std::size_t cursor, int screen_columns);

// Remembers where the cursor was left, so that the next drawing can begin where the last did.
class LineView {
 public:
  explicit LineView(Prompts prompts) : prompts_(std::move(prompts)) {}

  // Draws the text over what was drawn before. Texts taller than the screen show the part around the cursor.
  std::string draw(std::string_view text, std::size_t cursor, ScreenSize size);
  // Draws it once more, whole, with the cursor behind it at the start of a new line: editing is over.
  std::string finish(std::string_view text, ScreenSize size);
  // Nothing of what was drawn is on the screen any more.
  void forget() { cursor_row_ = 0; }

 private:
  std::string to_start() const;

  Prompts prompts_;
  std::size_t cursor_row_ = 0;  // below the first row drawn
};

}  // namespace inferno::terminal
