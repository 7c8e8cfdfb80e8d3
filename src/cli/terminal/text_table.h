// Aligned columns of text.
#pragma once

#include <string>
#include <vector>

namespace inferno {

enum class Align { left, right };

struct TableColumn {
  std::string title;
  Align align = Align::left;
};

// Escapes control characters in cells; the last column is not padded. If the table is wider than the screen
// (0: any width), the first cell of a row has a line of its own, and the others follow below it.
std::string text_table(const std::vector<TableColumn>& columns,
                       const std::vector<std::vector<std::string>>& rows, int screen_columns = 0);

// A text that can be printed, of at most `width` columns. Keeps the end of a long name, which says more than
// its start.
std::string shortened(const std::string& text, int width);

// Names side by side, sorted downwards as `ls` shows them, in rows of at most `screen_columns`. The names
// must be free of control characters.
std::string text_grid(const std::vector<std::string>& names, int screen_columns);

}  // namespace inferno
