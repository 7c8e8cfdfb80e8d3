// Ctrl-C as a fact to be asked for, instead of the end of the process.
#pragma once

#include <signal.h>

namespace inferno::terminal {

// While one lives, SIGINT only leaves a note. The third Ctrl-C that nobody looked at ends the process, so
// that one that hangs can be left. One at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool came() const;  // since the last clear()
  void clear();

 private:
  struct sigaction before_{};
};

}  // namespace inferno::terminal
