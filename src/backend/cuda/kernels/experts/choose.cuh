// Top-k choice of experts by one warp.
#pragma once

#include <cmath>
#include <cstdint>

#include "backend/cuda/device/warp.cuh"

namespace inferno::cuda {

struct Best {
  float logit;
  int expert;
};

__device__ inline bool comes_first(const Best& a, const Best& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.expert < b.expert);
}

// The next expert after `last` in the order of logits, then expert numbers. No list of chosen experts is
// needed.
__device__ inline Best next_best(const float* logits, int experts, const Best& last, int lane) {
  Best best = {-INFINITY, experts};
  for (int e = lane; e < experts; e += 32) {
    const Best candidate = {logits[e], e};
    if (comes_first(last, candidate) && comes_first(candidate, best)) best = candidate;
  }
  for (int offset = 16; offset > 0; offset >>= 1) {
    const Best other = {__shfl_xor_sync(full_warp, best.logit, offset),
                        __shfl_xor_sync(full_warp, best.expert, offset)};
    if (comes_first(other, best)) best = other;
  }
  return best;
}

// The logits of one token. active is at most max_active_experts, because each lane keeps one.
struct RouterLogits {
  const float* values;
  int count, active;
  bool renormalizes;
};
__device__ inline void choose_experts(std::int32_t* experts, float* shares, const RouterLogits& logits,
                                      int lane) {
  Best last = {INFINITY, -1};
  float top = 0.0f, sum = 0.0f, own_share = 0.0f;
  int own_expert = 0;
  for (int k = 0; k < logits.active; ++k) {
    last = next_best(logits.values, logits.count, last, lane);
    if (k == 0) top = last.logit;
    const float share = expf(last.logit - top);
    sum += share;
    if (lane != k) continue;
    // NaN logits choose no expert; the clamp keeps the following kernels within bounds.
    own_expert = min(last.expert, logits.count - 1);
    own_share = share;
  }
  if (!logits.renormalizes) {
    sum = 0.0f;
    for (int e = lane; e < logits.count; e += 32) sum += expf(logits.values[e] - top);
    sum = warp_sum(sum);
  }
  if (lane >= logits.active) return;
  experts[lane] = own_expert;
  shares[lane] = own_share / sum;
}

}  // namespace inferno::cuda
