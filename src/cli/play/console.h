// Input and output of a conversation: a terminal with line editor and colours, or pipes with text alone.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cli/environment.h"
#include "cli/terminal/input/line_input.h"

namespace inferno::play {

class Console {
 public:
  // Standard input and output. A conversation is interactive when both are terminals.
  explicit Console(const Environment& environment);

  bool is_interactive() const { return is_interactive_; }
  bool writes_to_terminal() const { return writes_to_terminal_; }
  bool has_colour() const { return has_colour_; }

  // Of the screen; 0 if the output is not a terminal or has no cursor (TERM=dumb).
  int columns() const;

  terminal::Entry read(const terminal::Question& question) { return input_->read(question); }
  terminal::Prompts prompts() const;
  // Where conversations are kept; empty if there is no home folder.
  std::filesystem::path conversations_folder() const;
  // A path as the user typed it, with ~ and variables replaced.
  std::filesystem::path path(const std::string& typed) const { return environment_.expanded(typed); }

  // Lets the user edit a text in $VISUAL or $EDITOR. Error{invalid_request} if the conversation is not
  // interactive or none is set, Error{io} if the editor fails.
  std::string edited(const std::string& text);

  // Writes text of the conversation. False if the reader is gone.
  bool write(std::string_view bytes) const;
  // Write messages about the conversation: to stdout on a terminal, broken at word borders, else to stderr.
  // note() is dim if there are colours.
  void say(const std::string& text) const;
  void note(const std::string& text) const;

 private:
  std::string shown(const std::string& text) const;
  void tell(const std::string& text) const;

  Environment environment_;
  bool is_interactive_, writes_to_terminal_, has_colour_;
  std::optional<terminal::TerminalMode> mode_;
  std::unique_ptr<terminal::LineInput> input_;
};

}  // namespace inferno::play
