// The terminal: its modes and size, and the guarantee that its settings are restored.
#pragma once

#include <memory>

#include "cli/terminal/line_view.h"

namespace inferno::terminal {

bool is_terminal(int file);
ScreenSize screen_size(int file);  // 80 x 24 if it is unknown

// How a terminal delivers what is typed.
enum class Mode {
  original,
  keys,  // every key at once without echo, Ctrl-C as a key, bracketed paste
  quiet  // no echo, typed text waits, Ctrl-C is a signal: while an answer is written
};

// Restores the original mode on destruction, when a signal ends the process, and when it crashes.
// One at a time; a SignalWatcher handles Ctrl-C while it exists.
class TerminalMode {
 public:
  // `input` and `output` are terminals.
  TerminalMode(int input, int output);
  ~TerminalMode();
  TerminalMode(const TerminalMode&) = delete;
  TerminalMode& operator=(const TerminalMode&) = delete;

  void set(Mode mode);
  // Restores the terminal, stops this process as Ctrl-Z does, and returns in `keys` mode when it continues.
  void suspend();

 private:
  Mode mode_ = Mode::original;
};

}  // namespace inferno::terminal
