#include "cli/terminal/styled_text.h"

#include <algorithm>

#include "text/characters.h"

namespace inferno::terminal {

StyledStep styled_step(std::string_view text, std::size_t at) {
  if (text.substr(at).starts_with("\x1b[")) {
    return {.end = std::min(text.find('m', at), text.size() - 1) + 1, .columns = 0, .is_style = true};
  }
  const std::size_t end = next_character(text, at);
  return {.end = end, .columns = columns(text.substr(at, end - at)), .is_style = false};
}

int styled_columns(std::string_view text) {
  int sum = 0;
  for (std::size_t at = 0; at < text.size();) {
    const StyledStep step = styled_step(text, at);
    sum += step.columns;
    at = step.end;
  }
  return sum;
}

}  // namespace inferno::terminal
