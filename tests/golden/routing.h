// Where a mixture of experts sends its tokens: recorded on one backend, repeated on another.
//
// Two router logits may lie closer than rounding can tell apart, and one backend then takes another expert
// than the other. Once both take the same experts, their results must agree as closely as those of any model.
#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"

namespace inferno::testing {

// What the router of one layer said, for the positions in the order they were fed.
struct Routes {
  int experts = 0, active = 0;
  std::vector<float> logits;  // [positions, experts]
};

// A token sent to other experts than its own router chose.
struct Detour {
  int layer = 0, position = 0;
  double gap = 0.0;    // how far the logits of expert left and expert taken lie apart
  double scale = 0.0;  // length of the router's logits
};

// The routes of one sequence end up in `routes`, one entry for each layer that has experts. Steps are queued
// as they are, never replayed.
std::unique_ptr<Backend> recording(std::unique_ptr<Backend> backend, std::vector<Routes>& routes);

// Every token goes to the experts that `routes` chose for it. Only for backends in host memory.
std::unique_ptr<Backend> repeating(std::unique_ptr<Backend> backend, const std::vector<Routes>& routes,
                                   std::vector<Detour>& detours);

}  // namespace inferno::testing
