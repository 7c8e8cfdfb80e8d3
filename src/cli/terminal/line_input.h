// One entry from the user: with the line editor on a terminal, line by line from a pipe.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/terminal/history.h"
#include "cli/terminal/key.h"
#include "cli/terminal/line_view.h"
#include "cli/terminal/screen.h"

namespace inferno::terminal {

enum class EntryKind { text, interrupted, end };

struct Entry {
  EntryKind kind = EntryKind::end;
  std::string text;  // as typed, """ included
};

class LineInput {
 public:
  virtual ~LineInput() = default;
  virtual Entry read() = 0;
};

// `mode` must outlive it; it is in `keys` mode while reading and in `quiet` mode between.
std::unique_ptr<LineInput> terminal_input(int input, int output, Prompts prompts, History history,
                                          TerminalMode& mode);

// A text that begins with """ goes on until it is closed. Nothing is echoed.
std::unique_ptr<LineInput> piped_input(int input);

}  // namespace inferno::terminal
