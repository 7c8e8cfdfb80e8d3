#include "cli/play/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/play/external_editor.h"
#include "cli/terminal/markdown/word_wrap.h"
#include "cli/terminal/screen.h"
#include "cli/terminal/streams.h"

namespace inferno::play {
namespace {

terminal::History history_of(const Environment& environment) {
  const auto folder = environment.state_folder();
  return folder ? terminal::History(*folder / "history") : terminal::History();
}

}  // namespace

Console::Console(const Environment& environment)
    : environment_(environment),
      is_interactive_(terminal::is_terminal(STDIN_FILENO) && terminal::is_terminal(STDOUT_FILENO)),
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

int Console::columns() const {
  return environment_.allows_redrawing(writes_to_terminal_) ? terminal::screen_size(STDOUT_FILENO).columns
                                                            : 0;
}

std::string Console::edited(const std::string& text) {
  if (!is_interactive_)
    fail(ErrorKind::invalid_request, "/edit: this conversation is not on a terminal",
         {.why = {}, .next = "write the message to standard input"});
  const auto visual = environment_.get("VISUAL");
  const auto editor = visual ? visual : environment_.get("EDITOR");
  if (!editor)
    fail(ErrorKind::invalid_request, "/edit: neither VISUAL nor EDITOR names an editor",
         {.why = {}, .next = "export EDITOR=nano before you start inferno"});
  if (!mode_) return edit_text(*editor, text, environment_.temporary_folder());
  const terminal::LentTerminal lent(*mode_);
  return edit_text(*editor, text, environment_.temporary_folder());
}

std::filesystem::path Console::conversations_folder() const {
  const auto folder = environment_.state_folder();
  return folder ? *folder / "conversations" : std::filesystem::path();
}

terminal::Prompts Console::prompts() const {
  return {.first = ">>> ", .next = "... ", .style = has_colour_ ? "\x1b[1;32m" : ""};
}

bool Console::write(std::string_view bytes) const {
  return terminal::write_out(STDOUT_FILENO, bytes);
}

void Console::say(const std::string& text) const {
  tell(shown(text));
}

void Console::note(const std::string& text) const {
  const bool is_dim = has_colour_ && is_interactive_;
  tell(fmt::format("{}{}{}\n", is_dim ? "\x1b[2m" : "", shown(text), is_dim ? "\x1b[0m" : ""));
}

void Console::tell(const std::string& text) const {
  if (!is_interactive_) return inferno::say(text);
  terminal::write_out(STDOUT_FILENO, text);
}

std::string Console::shown(const std::string& text) const {
  return terminal::wrapped(printable(text), is_interactive_ ? columns() : 0);
}

}  // namespace inferno::play
