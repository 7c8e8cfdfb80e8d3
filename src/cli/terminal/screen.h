// The terminal: its modes and size, and the guarantee that its settings are restored.
#pragma once

#include <memory>

#include "cli/terminal/input/line_view.h"

namespace inferno::terminal {

bool is_terminal(int file);
ScreenSize screen_size(int file);  // 80 x 24 if it is unknown
int line_columns(int file);        // to break lines at, if it is a terminal; else 0, which breaks none

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

  // A file that becomes readable when the window was resized; take_resize() makes it unreadable again.
  int resize_file() const;
  void take_resize();

 private:
  Mode mode_ = Mode::original;
};

// While it exists, the terminal does not show what is typed, so that typing cannot damage rows that are being
// redrawn; what was typed waits for the next reader. Ctrl-Z shows it again. Does nothing in the background,
// where a change of the terminal would stop the process. One at a time.
class HiddenTyping {
 public:
  explicit HiddenTyping(int terminal);
  ~HiddenTyping();
  HiddenTyping(const HiddenTyping&) = delete;
  HiddenTyping& operator=(const HiddenTyping&) = delete;

  void renew();  // after the process continues, or came to the foreground
};

// While it exists, another program has the terminal as the user set it up; afterwards it is in `quiet` mode.
class LentTerminal {
 public:
  explicit LentTerminal(TerminalMode& mode) : mode_(mode) { mode_.set(Mode::original); }
  ~LentTerminal() { mode_.set(Mode::quiet); }
  LentTerminal(const LentTerminal&) = delete;
  LentTerminal& operator=(const LentTerminal&) = delete;

 private:
  TerminalMode& mode_;
};

}  // namespace inferno::terminal
