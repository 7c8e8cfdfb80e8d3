// Signals that ask the process to stop, recorded so that running work can end cleanly. The one place that
// installs such handlers; a terminal that must be restored installs its own (cli/terminal/screen.h).
#pragma once

#include <signal.h>

#include <array>
#include <span>
#include <utility>
#include <vector>

namespace inferno {

inline constexpr std::array interrupt_signal = {SIGINT};  // Ctrl-C
inline constexpr std::array stop_signals = {SIGINT, SIGTERM, SIGHUP};

// While a watcher exists, its signals are recorded instead of ending the process. One watcher at a time.
// The third SIGINT without a clear() raises SIGTERM with the action it had before this watcher, so that a
// program that hangs can still be stopped.
class SignalWatcher {
 public:
  explicit SignalWatcher(std::span<const int> signals = interrupt_signal);
  ~SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;
  SignalWatcher& operator=(const SignalWatcher&) = delete;

  // The first signal since the last clear(), 0 if there was none. Callable from any thread.
  static int received();
  void clear();

 private:
  std::vector<std::pair<int, struct sigaction>> previous_;  // signal, and the action to restore
};

}  // namespace inferno
