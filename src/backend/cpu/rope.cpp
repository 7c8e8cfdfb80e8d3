// Per-head normalization, rotary positions and the write into the paged cache.
#include <algorithm>

#include "backend/cpu/operations.h"
#include "backend/cpu/views.h"

namespace inferno::cpu {
namespace {

void rotate(float* head, const float* cosines, int half) {
  const float* sines = cosines + half;
  for (int i = 0; i < half; ++i) {
    const float a = head[i], b = head[half + i];
    head[i] = a * cosines[i] - b * sines[i];
    head[half + i] = b * cosines[i] + a * sines[i];
  }
}

}  // namespace

void rotate_and_store(const Compute& compute, Matrix qkv, Matrix rope_table, const AttentionCall& call) {
  const AttentionSpec& spec = call.spec;
  const AttentionWeights& weights = call.weights;
  const int half = rope_table ? rope_table.cols / 2 : 0;
  const int kv_width = spec.kv_heads * spec.head_dim;
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
    std::copy_n(keys, kv_width, floats(call.cache.keys, slot));
    std::copy_n(keys + kv_width, kv_width, floats(call.cache.values, slot));
  };
  compute.pool.parallel_for(qkv.rows, grain_for(compute.pool, qkv.rows, qkv.cols), [&](const auto& range) {
    for (auto r = range.begin; r < range.end; ++r) finish_row(r);
  });
}

}  // namespace inferno::cpu
