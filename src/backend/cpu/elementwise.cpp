// Operations that read each row once: embedding, positions, norms, rotary positions, activations.
#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/cpu/operations.h"
#include "backend/cpu/panels.h"
#include "tensor/format.h"

namespace inferno::cpu {
namespace {

// Decodes one row of a table, from the stored bytes or from the panel that it was packed into.
void read_row(const Compute& compute, int worker, std::span<float> out, const Weight& table,
              std::int32_t row) {
  const PanelShape shape = panel_shape(table.format, table.rows, table.cols);
  if (compute.kernels == nullptr || shape.block_bytes == 0) {
    const std::size_t bytes = bytes_for(table.format, out.size());
    const std::byte* blocks = table.memory.data() + static_cast<std::size_t>(row) * bytes;
    decode(table.format, {blocks, bytes}, out);
    return;
  }
  const auto columns = static_cast<std::size_t>(shape.block_columns);
  float* values = compute.scratch.own(worker, columns * panel_rows);
  const std::byte* block =
      table.memory.data() + static_cast<std::size_t>(row / panel_rows) * shape.panel_bytes();
  for (std::size_t first = 0; first < out.size(); first += columns, block += shape.block_bytes) {
    compute.kernels->expand_block(table.format, block, values);
    for (std::size_t c = 0; c < std::min(columns, out.size() - first); ++c) {
      out[first + c] = values[c * panel_rows + static_cast<std::size_t>(row % panel_rows)];
    }
  }
}

void add_scaled(const Compute& compute, float* x, const float* y, float scale, int count) {
  if (compute.kernels != nullptr) {
    compute.kernels->add_scaled(x, y, scale, count);
    return;
  }
  for (int c = 0; c < count; ++c) x[c] += scale * y[c];
}

void rotate(float* head, const float* cosines, int half) {
  const float* sines = cosines + half;
  for (int i = 0; i < half; ++i) {
    const float a = head[i], b = head[half + i];
    head[i] = a * cosines[i] - b * sines[i];
    head[half + i] = b * cosines[i] + a * sines[i];
  }
}

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

void embed(const Compute& compute, Matrix out, const Weight& table, Matrix tokens, float scale) {
  const auto width = static_cast<std::size_t>(out.cols);
  compute.pool.parallel_for(out.rows, grain_for(compute.pool, out.rows, out.cols), [&](const auto& range) {
    for (auto r = range.begin; r < range.end; ++r) {
      const std::span<float> row(floats(out, r), width);
      read_row(compute, range.worker, row, table, *integers(tokens, r));
      if (scale != 1.0f) std::ranges::for_each(row, [scale](float& x) { x *= scale; });
    }
  });
}

void add_positions(const Compute& compute, Matrix x, const Weight& table, Matrix positions) {
  const auto width = static_cast<std::size_t>(x.cols);
  compute.pool.parallel_for(x.rows, grain_for(compute.pool, x.rows, x.cols), [&](const auto& range) {
    std::vector<float> position(width);
    for (auto r = range.begin; r < range.end; ++r) {
      read_row(compute, range.worker, position, table, *integers(positions, r));
      float* row = floats(x, r);
      for (std::size_t c = 0; c < width; ++c) row[c] += position[c];
    }
  });
}

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

// Per-head normalization, rotary positions and the write into the paged cache.
void rotate_and_store(const Compute& compute, Matrix qkv, Matrix rope_table, const AttentionCall& call) {
  const AttentionSpec& spec = call.spec;
  const AttentionWeights& weights = call.weights;
  const int half = rope_table ? rope_table.cols / 2 : 0;
  const auto finish_row = [&](std::int64_t r) {
    float* row = floats(qkv, r);
    for (int h = 0; h < spec.heads + spec.kv_heads; ++h) {
      float* head = row + h * spec.head_dim;
      if (spec.qk_norm) {
        const Matrix gain = h < spec.heads ? weights.q_norm : weights.k_norm;
        normalize(compute, head, head, spec.head_dim, {NormKind::rms, weights.norm_epsilon, gain, {}});
      }
      if (half > 0) rotate(head, floats(rope_table, *integers(call.step.positions, r)), half);
    }
    const std::int64_t slot = *integers(call.group.slots, r);
    const float* keys = row + spec.heads * spec.head_dim;
    for (int h = 0; h < spec.kv_heads; ++h) {
      key_head(call, h).store(slot, keys + h * spec.head_dim);
      value_head(call, h).store(slot, keys + (spec.kv_heads + h) * spec.head_dim);
    }
  };
  compute.pool.parallel_for(qkv.rows, grain_for(compute.pool, qkv.rows, qkv.cols), [&](const auto& range) {
    for (auto r = range.begin; r < range.end; ++r) finish_row(r);
  });
}

void activate(const Compute& compute, Matrix out, Matrix in, const ActivationSpec& activation) {
  // Rows are split by columns too, because a single token has one wide row.
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
