// Reads one entry from the user: with the line editor on a terminal, line by line from a pipe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cli/terminal/input/history.h"
#include "cli/terminal/input/key.h"
#include "cli/terminal/input/line_editor.h"
#include "cli/terminal/input/line_view.h"
#include "cli/terminal/screen.h"

namespace inferno::terminal {

enum class EntryKind { text, interrupted, end };

struct Entry {
  EntryKind kind = EntryKind::end;
  std::string text;  // as typed, """ included
};

// How to prompt for an entry.
struct Question {
  Prompts prompts;
  bool is_remembered = true;  // the entry is added to the history
  // Polled while waiting for a plain line; the line editor gets Ctrl-C as a key.
  std::function<bool()> was_interrupted = [] { return false; };
  Completer completer = {};  // what Tab inserts; only for the line editor
};

class LineInput {
 public:
  virtual ~LineInput() = default;
  virtual Entry read(const Question& question) = 0;
};

// `mode` must outlive the result: `keys` mode while reading, `quiet` mode between entries.
std::unique_ptr<LineInput> terminal_input(int input, int output, History history, TerminalMode& mode);

// Lines without editing. A text that begins with """ continues until the closing """. Prompts are written to
// `output`, if there is one.
std::unique_ptr<LineInput> plain_input(int input, std::optional<int> output);

}  // namespace inferno::terminal
