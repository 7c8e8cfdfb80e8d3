// Gated activations where sums are written by a kernel that has no room for all of them.
#pragma once

#include "backend/cuda/device/activation.cuh"

namespace inferno::cuda {

// silu and its clamped variant: with x = gate, at most `limit`, x * sigmoid(slope * x) * (up + shift), up
// within the limit as well.
struct Gate {
  float slope = 1.0f, limit = INFINITY, shift = 0.0f;
  __device__ float operator()(float gate, float up) const {
    const float x = gate > limit ? limit : gate;  // not a number stays what it is
    const float y = up > limit ? limit : (up < -limit ? -limit : up);
    return x * sigmoid(slope * x) * (y + shift);
  }
};

inline bool is_gate(const ActivationSpec& activation) {
  return activation.gated &&
         (activation.kind == Activation::silu || activation.kind == Activation::swiglu_clamped);
}
inline Gate gate_of(const ActivationSpec& activation) {
  if (activation.kind == Activation::silu) return {};
  return {.slope = 1.702f, .limit = activation.limit, .shift = 1.0f};
}

}  // namespace inferno::cuda
