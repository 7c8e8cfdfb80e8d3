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

// Escapes control characters in cells; the last column is not padded.
std::string text_table(const std::vector<TableColumn>& columns,
                       const std::vector<std::vector<std::string>>& rows);

}  // namespace inferno
