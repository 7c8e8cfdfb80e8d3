#include "cli/terminal/text_table.h"

#include <algorithm>

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

}  // namespace

std::string text_table(const std::vector<TableColumn>& table,
                       const std::vector<std::vector<std::string>>& rows) {
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

}  // namespace inferno
