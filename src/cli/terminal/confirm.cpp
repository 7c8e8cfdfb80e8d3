#include "cli/terminal/confirm.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <cstdio>
#include <iostream>

#include "base/utf8.h"
#include "cli/terminal/screen.h"

namespace inferno {

std::optional<bool> ask_yes(const std::string& question) {
  if (!terminal::is_terminal(STDIN_FILENO) || !terminal::is_terminal(STDERR_FILENO)) return std::nullopt;
  fmt::print(stderr, "{} [y/N] ", printable(question));
  std::fflush(stderr);
  std::string answer;
  if (!std::getline(std::cin, answer)) {
    fmt::print(stderr, "\n");
    return false;
  }
  for (char& letter : answer) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return answer == "y" || answer == "yes";
}

}  // namespace inferno
