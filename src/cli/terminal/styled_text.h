// Text with escape sequences for styles between its characters: how much room it takes on a screen.
#pragma once

#include <cstddef>
#include <string_view>

namespace inferno::terminal {

// One character, or one escape sequence "\x1b[...m", which takes no columns.
struct StyledStep {
  std::size_t end = 0;  // the offset after it
  int columns = 0;
  bool is_style = false;
};

StyledStep styled_step(std::string_view text, std::size_t at);
int styled_columns(std::string_view text);

}  // namespace inferno::terminal
