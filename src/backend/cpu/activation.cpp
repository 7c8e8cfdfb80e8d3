// What stands between the two matrices of an MLP.
#include <algorithm>
#include <cmath>

#include "backend/cpu/operations.h"
#include "backend/cpu/views.h"

namespace inferno::cpu {
namespace {

float sigmoid(float x) {
  return 1.0f / (1.0f + std::exp(-x));
}

float apply(float x, Activation kind) {
  switch (kind) {
    case Activation::gelu_tanh: {
      constexpr float root = 0.7978845608028654f;  // sqrt(2 / pi)
      return 0.5f * x * (1.0f + std::tanh(root * (x + 0.044715f * x * x * x)));
    }
    case Activation::gelu_erf: return 0.5f * x * (1.0f + std::erf(x * 0.7071067811865476f));
    case Activation::relu: return std::max(x, 0.0f);
    case Activation::silu:
    case Activation::swiglu_clamped: break;
  }
  return x * sigmoid(x);
}

void activate_row(float* out, const float* in, int hidden, const ActivationSpec& activation) {
  const float* up = in + hidden;
  if (activation.kind == Activation::swiglu_clamped) {
    const float limit = activation.limit;
    for (int i = 0; i < hidden; ++i) {
      const float g = std::min(in[i], limit);
      out[i] = g * sigmoid(1.702f * g) * (std::clamp(up[i], -limit, limit) + 1.0f);
    }
    return;
  }
  for (int i = 0; i < hidden; ++i) out[i] = apply(in[i], activation.kind);
  if (activation.gated) {
    for (int i = 0; i < hidden; ++i) out[i] *= up[i];
  }
}

}  // namespace

void activate(const Compute& compute, Matrix out, Matrix in, const ActivationSpec& activation) {
  compute.pool.parallel_for(out.rows, grain_for(compute.pool, out.rows, 8 * out.cols),
                            [&](const auto& range) {
                              for (auto r = range.begin; r < range.end; ++r) {
                                activate_row(floats(out, r), floats(in, r), out.cols, activation);
                              }
                            });
}

}  // namespace inferno::cpu
