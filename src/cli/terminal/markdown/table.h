// Tables of markdown: "| a | b |", and below the first row "|---|---|".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace inferno::terminal {

// "|---|:-:|": the row below the titles.
bool is_delimiter_row(std::string_view row);

// The rows with blanks added so that their columns stand below each other, aligned as the second row says.
// nullopt if that is wider than the screen (0: any width); the rows are then best left as they are.
std::optional<std::vector<std::string>> aligned_table(const std::vector<std::string>& rows,
                                                      int screen_columns);

}  // namespace inferno::terminal
