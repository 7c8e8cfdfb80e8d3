// Rows of text in columns, for people.
#pragma once

#include <string>
#include <vector>

namespace inferno {

enum class Align { left, right };

struct TableColumn {
  std::string title;
  Align align = Align::left;
};

// Cells are made printable; the last column is not padded.
std::string text_table(const std::vector<TableColumn>& columns,
                       const std::vector<std::vector<std::string>>& rows);

}  // namespace inferno
