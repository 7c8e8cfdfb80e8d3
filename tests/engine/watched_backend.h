// A backend under observation: counts allocations, can be told to fail or to compute a NaN.
#pragma once

#include <atomic>
#include <memory>

#include "backend/backend.h"

namespace inferno::testing {

struct Watch {
  std::atomic<int> allocations = 0;
  std::atomic<bool> device_fails = false;  // the next step throws Error{device}
  std::atomic<bool> has_determinism = true;
  std::atomic<int> step_milliseconds = 0;  // how long every step takes at least
  std::atomic<int> early_steps = 0;        // begun before the tokens of the step before were waited for
};
// The logits of a row with this top_k get a NaN.
inline constexpr int poisoned_top_k = 77;

// The watch of the backend that was made last.
Watch& watch();
std::unique_ptr<Backend> watched(std::unique_ptr<Backend> backend);

}  // namespace inferno::testing
