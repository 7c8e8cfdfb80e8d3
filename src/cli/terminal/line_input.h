// One entry from the user: with the line editor on a terminal, line by line from a pipe.
#pragma once

#include <functional>
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

// How to ask for an entry.
struct Question {
  Prompts prompts;
  bool is_remembered = true;  // the entry goes to the history
  // Asked while waiting for a plain line; on an edited one Ctrl-C is a key.
  std::function<bool()> was_interrupted = [] { return false; };
};

class LineInput {
 public:
  virtual ~LineInput() = default;
  virtual Entry read(const Question& question) = 0;
};

// `mode` must outlive it; it is in `keys` mode while reading and in `quiet` mode between.
std::unique_ptr<LineInput> terminal_input(int input, int output, History history, TerminalMode& mode);

// Lines as they come, without editing. A text that begins with """ goes
// on until it is closed. Prompts are written to `output`, where there is one.
std::unique_ptr<LineInput> plain_input(int input, std::optional<int> output);

}  // namespace inferno::terminal
