#include "cli/terminal/line_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/characters.h"

namespace inferno::terminal {
namespace {

constexpr std::string_view tab = "    ";

std::string styled(const std::string& prompt, const std::string& style) {
  return style.empty() ? prompt : style + prompt + "\x1b[0m";
}

}  // namespace

Layout lay_out(const Prompts& prompts, std::string_view text, std::size_t cursor, int screen_columns) {
  screen_columns = std::max(screen_columns, 2);
  Layout layout;
  layout.rows.push_back(styled(prompts.first, prompts.style));
  int column = columns(prompts.first);
  const auto place_cursor = [&] {
    // After the last column the cursor is at the start of the next row.
    if (column >= screen_columns) {
      layout.rows.emplace_back();
      column = 0;
    }
    layout.cursor_row = layout.rows.size() - 1;
    layout.cursor_column = column;
  };
  for (std::size_t at = 0; at < text.size();) {
    if (at == cursor) place_cursor();
    const std::size_t end = next_character(text, at);
    std::string_view character = text.substr(at, end - at);
    at = end;
    if (character == "\n" || character == "\r\n") {
      layout.rows.push_back(styled(prompts.next, prompts.style));
      column = columns(prompts.next);
      continue;
    }
    if (character == "\t") character = tab;
    const int width = columns(character);
    if (column + width > screen_columns) {
      layout.rows.emplace_back();
      column = 0;
    }
    layout.rows.back() += character;
    column += width;
  }
  if (cursor >= text.size()) place_cursor();
  return layout;
}

std::string LineView::to_start() const {
  std::string out = "\r";
  if (cursor_row_ > 0) out += fmt::format("\x1b[{}A", cursor_row_);
  return out + "\x1b[J";
}

std::string LineView::draw(std::string_view text, std::size_t cursor, ScreenSize size) {
  const Layout layout = lay_out(prompts_, text, cursor, size.columns);
  const std::size_t height = static_cast<std::size_t>(std::max(size.rows - 1, 1));
  const std::size_t first = layout.cursor_row < height ? 0 : layout.cursor_row - height + 1;
  const std::size_t last = std::min(layout.rows.size(), first + height);
  std::string out = to_start();
  for (std::size_t row = first; row < last; ++row) {
    if (row > first) out += "\r\n";
    out += layout.rows[row];
  }
  const std::size_t below = last - 1 - layout.cursor_row;
  if (below > 0) out += fmt::format("\x1b[{}A", below);
  out += '\r';
  if (layout.cursor_column > 0) out += fmt::format("\x1b[{}C", layout.cursor_column);
  cursor_row_ = layout.cursor_row - first;
  return out;
}

std::string LineView::finish(std::string_view text, ScreenSize size) {
  const Layout layout = lay_out(prompts_, text, text.size(), size.columns);
  std::string out = to_start();
  for (const std::string& row : layout.rows) out += row + "\r\n";
  cursor_row_ = 0;
  return out;
}

}  // namespace inferno::terminal
