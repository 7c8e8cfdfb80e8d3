#include "cli/terminal/input/line_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/terminal/styled_text.h"
#include "text/characters.h"

namespace inferno::terminal {
namespace {

constexpr std::string_view tab = "    ";
const std::string clear_row = "\x1b[K", clear_below = "\x1b[J";

// The beginning of a row up to the character in this column, which is included.
std::string_view through_column(std::string_view row, int column) {
  std::size_t at = 0;
  for (int passed = 0; at < row.size() && passed <= column;) {
    const StyledStep next = styled_step(row, at);
    passed += next.columns;
    at = next.end;
  }
  return row.substr(0, at);
}

// Rows are cleared one by one: tmux moves a screen that is cleared from its first column on into the
// scrollback, where it could not be redrawn. A full row leaves the cursor on its last character, which
// clearing would erase.
std::string last_row(const std::string& row, int screen_columns) {
  return styled_columns(row) < screen_columns ? clear_row + row + clear_below : clear_below + row;
}

// Builds the rows of a layout.
class Rows {
 public:
  Rows(Layout& layout, int screen_columns) : layout_(layout), columns_(std::max(screen_columns, 2)) {}

  // Begins a line with its prompt, which is broken at the edge like the text.
  void begin(const std::string& prompt, const std::string& style) {
    layout_.rows.push_back(style);
    column_ = 0;
    for (std::size_t at = 0; at < prompt.size();) {
      const std::size_t end = next_character(prompt, at);
      put(std::string_view(prompt).substr(at, end - at));
      at = end;
    }
    if (!style.empty()) layout_.rows.back() += "\x1b[0m";
  }

  void put(std::string_view character) {
    const int width = columns(character);
    if (column_ + width > columns_) next_row();
    layout_.rows.back() += character;
    column_ += width;
  }

  void place_cursor() {
    // After the last column the cursor is at the start of the next row.
    if (column_ >= columns_) next_row();
    layout_.cursor_row = layout_.rows.size() - 1;
    layout_.cursor_column = column_;
  }

 private:
  void next_row() {
    layout_.rows.emplace_back();
    column_ = 0;
  }

  Layout& layout_;
  int columns_;
  int column_ = 0;
};

}  // namespace

Layout lay_out(const Prompts& prompts, std::string_view text, std::size_t cursor, int screen_columns) {
  Layout layout;
  Rows rows(layout, screen_columns);
  rows.begin(prompts.first, prompts.style);
  for (std::size_t at = 0; at < text.size();) {
    if (at == cursor) rows.place_cursor();
    const std::size_t end = next_character(text, at);
    const std::string_view character = text.substr(at, end - at);
    at = end;
    if (character == "\n" || character == "\r\n") {
      rows.begin(prompts.next, prompts.style);
    } else {
      rows.put(character == "\t" ? tab : character);
    }
  }
  if (cursor >= text.size()) rows.place_cursor();
  return layout;
}

std::size_t reflowed_rows(std::string_view row, int screen_columns) {
  screen_columns = std::max(screen_columns, 2);
  std::size_t count = 1;
  int column = 0;
  for (std::size_t at = 0; at < row.size();) {
    const StyledStep next = styled_step(row, at);
    if (column + next.columns > screen_columns) {
      ++count;
      column = 0;
    }
    column += next.columns;
    at = next.end;
  }
  return count;
}

std::string LineView::to_start(int screen_columns) const {
  std::size_t rows = 0;
  for (const std::string& row : above_) rows += reflowed_rows(row, screen_columns);
  std::string out = "\r";
  if (rows > 1) out += fmt::format("\x1b[{}A", rows - 1);
  return out;
}

std::string LineView::draw(std::string_view text, std::size_t cursor, ScreenSize size) {
  Layout layout = lay_out(prompts_, text, cursor, size.columns);
  const std::size_t height = static_cast<std::size_t>(std::max(size.rows - 1, 1));
  const std::size_t first = layout.cursor_row < height ? 0 : layout.cursor_row - height + 1;
  const std::size_t last = std::min(layout.rows.size(), first + height);
  std::string out = to_start(size.columns);
  for (std::size_t row = first; row < last; ++row) {
    if (row > first) out += "\r\n";
    out += row + 1 < last ? clear_row + layout.rows[row] : last_row(layout.rows[row], size.columns);
  }
  const std::size_t below = last - 1 - layout.cursor_row;
  if (below > 0) out += fmt::format("\x1b[{}A", below);
  out += '\r';
  if (layout.cursor_column > 0) out += fmt::format("\x1b[{}C", layout.cursor_column);
  above_.clear();
  for (std::size_t row = first; row < layout.cursor_row; ++row) above_.push_back(std::move(layout.rows[row]));
  above_.emplace_back(through_column(layout.rows[layout.cursor_row], layout.cursor_column));
  return out;
}

std::string LineView::finish(std::string_view text, ScreenSize size) {
  const Layout layout = lay_out(prompts_, text, text.size(), size.columns);
  std::string out = to_start(size.columns);
  for (const std::string& row : layout.rows) out += clear_row + row + "\r\n";
  above_.clear();
  return out + clear_below;
}

}  // namespace inferno::terminal
