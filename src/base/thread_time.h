// CPU time of the calling thread. Limits that protect from hostile input count it, so that a busy machine
// does not refuse harmless input.
#pragma once

#include <chrono>
#include <ctime>

namespace inferno {

inline std::chrono::nanoseconds thread_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace inferno
