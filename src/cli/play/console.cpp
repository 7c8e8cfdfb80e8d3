#include "cli/play/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/utf8.h"
#include "cli/terminal/streams.h"

namespace inferno::play {
namespace {

terminal::History history_of(const Environment& environment) {
  const auto folder = environment.state_folder();
  return folder ? terminal::History(*folder / "history") : terminal::History();
}

}  // namespace

Console::Console(const Environment& environment)
    : is_interactive_(terminal::is_terminal(STDIN_FILENO) && terminal::is_terminal(STDOUT_FILENO)),
      writes_to_terminal_(terminal::is_terminal(STDOUT_FILENO)),
      has_colour_(environment.allows_colour(writes_to_terminal_)) {
  if (is_interactive_ && environment.get("TERM") != "dumb") {
    mode_.emplace(STDIN_FILENO, STDOUT_FILENO);
    input_ = terminal::terminal_input(STDIN_FILENO, STDOUT_FILENO, history_of(environment), *mode_);
  } else {
    input_ =
        terminal::plain_input(STDIN_FILENO, is_interactive_ ? std::optional(STDOUT_FILENO) : std::nullopt);
  }
}

terminal::Prompts Console::prompts() const {
  return {.first = ">>> ", .next = "... ", .style = has_colour_ ? "\x1b[1;32m" : ""};
}

bool Console::write(std::string_view bytes) const {
  return terminal::write_out(STDOUT_FILENO, bytes);
}

void Console::say(const std::string& text) const {
  terminal::write_out(is_interactive_ ? STDOUT_FILENO : STDERR_FILENO, printable(text));
}

void Console::note(const std::string& text) const {
  const bool is_dim = has_colour_ && is_interactive_;
  terminal::write_out(
      is_interactive_ ? STDOUT_FILENO : STDERR_FILENO,
      fmt::format("{}{}{}\n", is_dim ? "\x1b[2m" : "", printable(text), is_dim ? "\x1b[0m" : ""));
}

}  // namespace inferno::play
