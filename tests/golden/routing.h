// Records which experts a router chooses on one backend and repeats the choice on another.
//
// If two router logits are closer than rounding errors, backends may choose different experts. With the same
// experts, their results must agree as closely as those of any model.
#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"

namespace inferno::testing {

// The router logits of one layer, in the order of positions.
struct Routes {
  int experts = 0, active = 0;
  std::vector<float> logits;  // [positions, experts]
};

// A token that was sent to another expert than its router chose.
struct Detour {
  int layer = 0, position = 0;
  double gap = 0.0;    // distance between the logits of the two experts
  double scale = 0.0;  // length of the router's logits
};

// The routes of one sequence end up in `routes`, one entry for each layer that has experts. Steps are queued
// as they are, never replayed.
std::unique_ptr<Backend> recording(std::unique_ptr<Backend> backend, std::vector<Routes>& routes);

// Every token goes to the experts that `routes` chose for it. Only for backends in host memory.
std::unique_ptr<Backend> repeating(std::unique_ptr<Backend> backend, const std::vector<Routes>& routes,
                                   std::vector<Detour>& detours);

}  // namespace inferno::testing
