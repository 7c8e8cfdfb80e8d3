// Long work in a thread of its own, so that Ctrl-C and SIGTERM end the program within a second whatever the
// work is waiting for: a name server, a disk, another process.
#pragma once

#include <functional>

namespace inferno {

// While one lives, SIGINT, SIGTERM and SIGHUP are noted instead of ending the process. One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static int came();  // the number of the first, 0 when none came; any thread
};

// Runs `work` and calls `tick` ten times a second meanwhile, and once at the end. What `work` throws is
// thrown here. After a signal `work` gets most of a second to notice StopSignals::came(); then `stopped` is
// called and the command ends with exit code 130 (SIGINT) or 143.
void run_interruptibly(const std::function<void()>& work, const std::function<void()>& tick,
                       const std::function<void()>& stopped);

}  // namespace inferno
