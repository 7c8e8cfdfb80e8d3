// Runs work that may block (a name server, a disk, another process) in a thread, so that a stop signal ends
// the program within a second.
#pragma once

#include <functional>

#include "base/signals.h"

namespace inferno {

// Runs `work`, calls `tick` ten times a second meanwhile and once at the end, and rethrows what `work`
// throws. The caller holds a SignalWatcher(stop_signals). After a signal `work` has 600 ms to notice
// SignalWatcher::received(); then `stopped` is called and the command exits with 130 (SIGINT) or 143.
void run_interruptibly(const std::function<void()>& work, const std::function<void()>& tick,
                       const std::function<void()>& stopped);

}  // namespace inferno
