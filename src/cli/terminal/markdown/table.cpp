#include "cli/terminal/markdown/table.h"

#include <algorithm>

#include "base/utf8.h"
#include "text/characters.h"

namespace inferno::terminal {
namespace {

enum class Side { left, right, centre };

struct Column {
  int width = 3;
  Side side = Side::left;
};

// The texts between the bars. "\|" and a bar in `code` belong to a text.
std::vector<std::string> cells(std::string_view row) {
  row = trimmed(row);
  if (row.starts_with('|')) row.remove_prefix(1);
  std::vector<std::string> found(1);
  bool is_code = false;
  for (std::size_t at = 0; at < row.size(); ++at) {
    if (row[at] == '`') is_code = !is_code;
    const bool is_escaped = at > 0 && row[at - 1] == '\\';
    if (row[at] == '|' && !is_code && !is_escaped) {
      found.emplace_back();
    } else {
      found.back() += row[at];
    }
  }
  for (std::string& cell : found) cell = trimmed(cell);
  if (found.size() > 1 && found.back().empty() && row.ends_with('|')) found.pop_back();
  return found;
}

Side side_of(std::string_view delimiter) {
  if (!delimiter.ends_with(':')) return Side::left;
  return delimiter.starts_with(':') ? Side::centre : Side::right;
}

std::string delimiter(const Column& column, std::string_view written) {
  std::string text(static_cast<std::size_t>(column.width), '-');
  if (written.starts_with(':')) text.front() = ':';
  if (written.ends_with(':')) text.back() = ':';
  return text;
}

std::string padded(const std::string& cell, const Column& column) {
  const auto room = static_cast<std::size_t>(std::max(column.width - columns(cell), 0));
  const std::size_t before = column.side == Side::left ? 0 : column.side == Side::right ? room : room / 2;
  return std::string(before, ' ') + cell + std::string(room - before, ' ');
}

}  // namespace

bool is_delimiter_row(std::string_view row) {
  const auto found = cells(row);
  return std::ranges::all_of(found, [](const std::string& cell) {
    return cell.find('-') != std::string::npos && cell.find_first_not_of("-:") == std::string::npos;
  });
}

std::optional<std::vector<std::string>> aligned_table(const std::vector<std::string>& rows,
                                                      int screen_columns) {
  std::vector<std::vector<std::string>> table;
  std::vector<Column> layout;
  for (const std::string& row : rows) {
    table.push_back(cells(row));
    const bool is_delimiter = table.size() == 2;
    layout.resize(std::max(layout.size(), table.back().size()));
    for (std::size_t at = 0; at < table.back().size(); ++at) {
      if (is_delimiter) {
        layout[at].side = side_of(table.back()[at]);
      } else {
        layout[at].width = std::max(layout[at].width, columns(table.back()[at]));
      }
    }
  }
  int width = 1;
  for (const Column& column : layout) width += column.width + 3;
  if (screen_columns > 0 && width > screen_columns) return std::nullopt;
  std::vector<std::string> aligned;
  for (std::size_t row = 0; row < table.size(); ++row) {
    std::string text = "|";
    for (std::size_t at = 0; at < table[row].size(); ++at) {
      const std::string& cell = table[row][at];
      text += " " + (row == 1 ? delimiter(layout[at], cell) : padded(cell, layout[at])) + " |";
    }
    aligned.push_back(std::move(text));
  }
  return aligned;
}

}  // namespace inferno::terminal
