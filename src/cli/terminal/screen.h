// The terminal itself: its modes, its size, and the promise that it is left as it was found.
#pragma once

#include <memory>

#include "cli/terminal/line_view.h"

namespace inferno::terminal {

bool is_terminal(int file);
ScreenSize screen_size(int file);  // 80 x 24 when nobody knows

// How a terminal hands over what is typed.
enum class Mode {
  as_found,
  keys,  // every key at once, none echoed, Ctrl-C as a key; bracketed paste
  quiet  // nothing echoed and what is typed waits, but Ctrl-C is a signal: while an answer is written
};

// Restores the mode that it found when it goes, when the process is ended by a signal, and when it crashes.
// One at a time; a SignalWatcher handles Ctrl-C while it exists.
class TerminalMode {
 public:
  // `input` and `output` are terminals.
  TerminalMode(int input, int output);
  ~TerminalMode();
  TerminalMode(const TerminalMode&) = delete;
  TerminalMode& operator=(const TerminalMode&) = delete;

  void set(Mode mode);
  // Gives the terminal back, stops this process as Ctrl-Z does, and returns in `keys` mode when it goes on.
  void suspend();

 private:
  Mode mode_ = Mode::as_found;
};

}  // namespace inferno::terminal
