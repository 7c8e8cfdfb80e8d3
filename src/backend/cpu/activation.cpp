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

// `up` is null unless gated.
void activate_piece(const Compute& compute, float* out, const float* gate, const float* up, int count,
                    const ActivationSpec& activation) {
  if (compute.kernels != nullptr && compute.kernels->activate(out, gate, up, count, activation)) return;
  if (activation.kind == Activation::swiglu_clamped) {
    const float limit = activation.limit;
    for (int i = 0; i < count; ++i) {
      const float g = std::min(gate[i], limit);
      out[i] = g * sigmoid(1.702f * g) * (std::clamp(up[i], -limit, limit) + 1.0f);
    }
    return;
  }
  for (int i = 0; i < count; ++i) out[i] = apply(gate[i], activation.kind);
  if (up != nullptr) {
    for (int i = 0; i < count; ++i) out[i] *= up[i];
  }
}

}  // namespace

void activate(const Compute& compute, Matrix out, Matrix in, const ActivationSpec& activation) {
  // By stretches of columns too: a single token has one row, but a wide one.
  constexpr int step = 1024;
  const int pieces = (out.cols + step - 1) / step;
  const std::int64_t total = std::int64_t{out.rows} * pieces;
  compute.pool.parallel_for(total, grain_for(compute.pool, total, 4 * step), [&](const auto& range) {
    for (auto i = range.begin; i < range.end; ++i) {
      const int first = static_cast<int>(i % pieces) * step;
      const float* gate = floats(in, i / pieces) + first;
      const float* up = in.cols == 2 * out.cols ? gate + out.cols : nullptr;
      activate_piece(compute, floats(out, i / pieces) + first, gate, up, std::min(step, out.cols - first),
                     activation);
    }
  });
}

}  // namespace inferno::cpu
