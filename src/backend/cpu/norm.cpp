// Residual sums and normalization.
#include <cmath>

#include "backend/cpu/operations.h"
#include "backend/cpu/views.h"

namespace inferno::cpu {
namespace {

void add_scaled(const Compute& compute, float* x, const float* y, float scale, int count) {
  if (compute.kernels != nullptr) {
    compute.kernels->add_scaled(x, y, scale, count);
    return;
  }
  for (int c = 0; c < count; ++c) x[c] += scale * y[c];
}

}  // namespace

void normalize(const Compute& compute, float* out, const float* in, int width, const Norm& norm) {
  if (compute.kernels != nullptr) {
    compute.kernels->normalize({.out = out,
                                .in = in,
                                .width = width,
                                .centered = norm.kind == NormKind::layer,
                                .epsilon = norm.epsilon,
                                .gain = floats(norm.gain),
                                .bias = norm.bias ? floats(norm.bias) : nullptr});
    return;
  }
  float mean = 0.0f;
  if (norm.kind == NormKind::layer) {
    for (int c = 0; c < width; ++c) mean += in[c];
    mean /= static_cast<float>(width);
  }
  float square = 0.0f;
  for (int c = 0; c < width; ++c) square += (in[c] - mean) * (in[c] - mean);
  const float inverse = 1.0f / std::sqrt(square / static_cast<float>(width) + norm.epsilon);
  const float* gain = floats(norm.gain);
  for (int c = 0; c < width; ++c) out[c] = (in[c] - mean) * inverse * gain[c];
  if (norm.bias) {
    const float* bias = floats(norm.bias);
    for (int c = 0; c < width; ++c) out[c] += bias[c];
  }
}

void add_norm(const Compute& compute, Matrix out, Matrix residual, Matrix delta, float scale,
              const Norm& norm) {
  const std::int64_t rows = residual.rows;
  compute.pool.parallel_for(rows, grain_for(compute.pool, rows, residual.cols), [&](const auto& range) {
    for (auto r = range.begin; r < range.end; ++r) {
      float* x = floats(residual, r);
      if (delta) add_scaled(compute, x, floats(delta, r), scale, residual.cols);
      if (out) normalize(compute, floats(out, r), x, residual.cols, norm);
    }
  });
}

}  // namespace inferno::cpu
