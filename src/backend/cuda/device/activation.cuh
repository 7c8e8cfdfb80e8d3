// The activation between the two matrices of an MLP.
#pragma once

#include "spec/model_spec.h"

namespace inferno::cuda {

__device__ inline float sigmoid(float x) {
  return 1.0f / (1.0f + expf(-x));
}

__device__ inline float activated(float x, Activation kind) {
  switch (kind) {
    case Activation::gelu_tanh:
      return 0.5f * x * (1.0f + tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x)));
    case Activation::gelu_erf: return 0.5f * x * (1.0f + erff(x * 0.7071067811865476f));
    case Activation::relu: return fmaxf(x, 0.0f);
    case Activation::silu:
    case Activation::swiglu_clamped: break;
  }
  return x * sigmoid(x);
}

// `up` is read only if the activation is gated.
__device__ inline float activated(float gate, float up, const ActivationSpec& spec) {
  if (spec.kind == Activation::swiglu_clamped) {
    const float g = fminf(gate, spec.limit);
    return g * sigmoid(1.702f * g) * (fminf(fmaxf(up, -spec.limit), spec.limit) + 1.0f);
  }
  const float value = activated(gate, spec.kind);
  return spec.gated ? value * up : value;
}

// silu and its clamped variant, the gated activations that epilogues short of registers support: with x =
// min(gate, limit), x * sigmoid(slope * x) * (up + shift), where up is clamped to the limit as well.
struct Gate {
  float slope = 1.0f, limit = INFINITY, shift = 0.0f;
  __device__ float operator()(float gate, float up) const {
    const float x = gate > limit ? limit : gate;  // propagates NaN
    const float y = up > limit ? limit : (up < -limit ? -limit : up);
    return x * sigmoid(slope * x) * (y + shift);
  }
};

inline Gate gate_of(const ActivationSpec& activation) {
  if (activation.kind == Activation::silu) return {};
  return {.slope = 1.702f, .limit = activation.limit, .shift = 1.0f};
}

}  // namespace inferno::cuda
