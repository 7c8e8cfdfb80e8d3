// Input and output of a conversation: a terminal with line editor and colours, or pipes with text alone.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cli/environment.h"
#include "cli/terminal/line_input.h"

namespace inferno::play {

class Console {
 public:
  // Standard input and output. A conversation is interactive when both are terminals.
  explicit Console(const Environment& environment);

  bool is_interactive() const { return is_interactive_; }
  bool writes_to_terminal() const { return writes_to_terminal_; }
  bool has_colour() const { return has_colour_; }

  terminal::Entry read(const terminal::Question& question) { return input_->read(question); }
  terminal::Prompts prompts() const;

  // Writes text of the conversation. False if the reader is gone.
  bool write(std::string_view bytes) const;
  // Write messages about the conversation: to stdout on a terminal, else to stderr. note() is dim if there
  // are colours.
  void say(const std::string& text) const;
  void note(const std::string& text) const;

 private:
  bool is_interactive_, writes_to_terminal_, has_colour_;
  std::optional<terminal::TerminalMode> mode_;
  std::unique_ptr<terminal::LineInput> input_;
};

}  // namespace inferno::play
