#include "cli/terminal/text_table.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <string_view>

#include "base/utf8.h"
#include "text/characters.h"

namespace inferno {
namespace {

std::string one_line(const std::string& cell) {
  std::string text = printable(cell);
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::replace(text.begin(), text.end(), '\t', ' ');
  return text;
}

// For a screen that is too narrow for columns.
std::string stacked(const std::vector<std::vector<std::string>>& lines, int screen_columns) {
  std::string text;
  for (const auto& line : lines) {
    std::string row = "  ";
    int width = 2;
    for (const std::string& cell : std::span(line).subspan(1)) {
      const bool is_first = width == 2;
      if (!is_first && width + 2 + columns(cell) > screen_columns) {
        row += "\n  ";
        width = 2;
      } else if (!is_first) {
        row += "  ";
        width += 2;
      }
      row += cell;
      width += columns(cell);
    }
    text += line.front() + "\n" + row + "\n";
  }
  return text;
}

}  // namespace

std::string text_table(const std::vector<TableColumn>& table,
                       const std::vector<std::vector<std::string>>& rows, int screen_columns) {
  std::vector<std::vector<std::string>> lines = {{}};
  for (const TableColumn& column : table) lines.front().push_back(column.title);
  for (const auto& row : rows) {
    lines.emplace_back();
    for (const std::string& cell : row) lines.back().push_back(one_line(cell));
  }
  std::vector<int> widths(table.size(), 0);
  for (const auto& line : lines) {
    for (std::size_t at = 0; at < line.size(); ++at) widths[at] = std::max(widths[at], columns(line[at]));
  }
  const int width = std::accumulate(widths.begin(), widths.end(), 2 * (static_cast<int>(table.size()) - 1));
  if (screen_columns > 0 && width > screen_columns) return stacked(lines, screen_columns);
  std::string text;
  for (const auto& line : lines) {
    for (std::size_t at = 0; at < line.size(); ++at) {
      const std::string padding(static_cast<std::size_t>(widths[at] - columns(line[at])), ' ');
      if (table[at].align == Align::right) text += padding;
      text += line[at];
      if (table[at].align == Align::left && at + 1 < line.size()) text += padding;
      text += at + 1 < line.size() ? "  " : "\n";
    }
  }
  return text;
}

std::string shortened(const std::string& text, int width) {
  const std::string whole = one_line(text);
  if (columns(whole) <= width) return whole;
  constexpr int dots = 3;
  if (width <= dots) return std::string(static_cast<std::size_t>(std::max(width, 0)), '.');
  std::size_t begin = 0;
  while (begin < whole.size() && columns(std::string_view(whole).substr(begin)) > width - dots)
    begin = next_character(whole, begin);
  return "..." + whole.substr(begin);
}

std::string text_grid(const std::vector<std::string>& names, int screen_columns) {
  if (names.empty()) return {};
  int widest = 0;
  for (const std::string& name : names) widest = std::max(widest, columns(name));
  const auto across = static_cast<std::size_t>(std::max((screen_columns + 1) / (widest + 2), 1));
  const std::size_t rows = (names.size() + across - 1) / across;
  std::string text;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t at = row; at < names.size(); at += rows) {
      text += names[at];
      const bool is_last = at + rows >= names.size();
      if (!is_last) text.append(static_cast<std::size_t>(widest + 2 - columns(names[at])), ' ');
    }
    text += '\n';
  }
  return text;
}

}  // namespace inferno
