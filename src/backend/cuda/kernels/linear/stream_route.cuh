// The choice of experts at the start of a stream kernel, by the warp that copies: it needs it first.
#pragma once

#include "backend/cuda/kernels/linear/stream_input.cuh"

namespace inferno::cuda {

// Router logits are added up as integers, 2^-28 each: in any order the sum is the same, so that all blocks of
// a kernel may add theirs to one number. What would not fit is cut off.
constexpr float route_unit = 268435456.0f, route_most = 36028797018963968.0f;
__device__ inline void add_to_logit(std::int64_t* sum, float value) {
  const long long units = __float2ll_rn(fminf(fmaxf(value * route_unit, -route_most), route_most));
  atomicAdd(reinterpret_cast<unsigned long long*>(sum), static_cast<unsigned long long>(units));
}

// Unsigned numbers in the order of floats.
__device__ inline std::uint32_t ordered(float value) {
  const std::uint32_t bits = __float_as_uint(value);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
__device__ inline float unordered(std::uint32_t key) {
  return __uint_as_float((key & 0x80000000u) != 0 ? key & 0x7FFFFFFFu : ~key);
}

// A lane has every 32nd expert.
struct Router {
  static constexpr int most = stream_most_experts / 32;
  const Routing& routing;
  const int lane;
  float logits[most] = {};  // the biases to begin with

  __device__ Router(const Routing& r, int l) : routing(r), lane(l) {
    if (routing.bias == nullptr) return;
#pragma unroll
    for (int i = 0; i < most; ++i) {
      if (lane + 32 * i < routing.experts) logits[i] = __ldg(routing.bias + lane + 32 * i);
    }
  }

  // Behind the kernel before. Returns 1 / rms.
  __device__ float read(const DelayedNorm& norm) {
    long long sums[most] = {};
#pragma unroll
    for (int i = 0; i < most; ++i) {
      if (lane + 32 * i < routing.experts) sums[i] = __ldcg(routing.sums + lane + 32 * i);
    }
    SquareParts squares;
    squares.load(norm, lane);
    const float inverse = squares.inverse_rms(norm, lane);
#pragma unroll
    for (int i = 0; i < most; ++i) {
      if (32 * i < routing.experts) logits[i] += static_cast<float>(sums[i]) * (1.0f / route_unit) * inverse;
    }
    return inverse;
  }

  // The experts of the largest logits, the lower number first where they are equal: where they are found,
  // and what lane k has of the k-th.
  struct Choice {
    float logit = 0.0f;
    std::int32_t expert = 0;
  };
  __device__ Choice choose(std::int32_t* chosen) const {
    const Choice out = routing.experts <= 32 ? rank() : take_largest();
    chosen[lane] = out.expert;
    return out;
  }

  // Each lane counts those that come before its own expert, all at once.
  __device__ Choice rank() const {
    const std::uint32_t key = lane < routing.experts ? ordered(logits[0]) : 0;
    int before = 0;
#pragma unroll
    for (int other = 0; other < 32; ++other) {
      const std::uint32_t theirs = __shfl_sync(full_warp, key, other);
      before += theirs > key || (theirs == key && other < lane) ? 1 : 0;
    }
    // Lane k asks who has k before it. Everybody has another number.
    int owner = 0;
    for (int k = 0; k < routing.active; ++k) {
      const int found = __ffs(static_cast<int>(__ballot_sync(full_warp, before == k))) - 1;
      if (lane == k) owner = found;
    }
    return {__shfl_sync(full_warp, logits[0], owner), min(owner, routing.experts - 1)};
  }

  __device__ Choice take_largest() const {
    std::uint32_t keys[most];
#pragma unroll
    for (int i = 0; i < most; ++i) keys[i] = lane + 32 * i < routing.experts ? ordered(logits[i]) : 0;
    Choice out;
    for (int k = 0; k < routing.active; ++k) {
      std::uint32_t key = keys[0];
      int expert = lane;
#pragma unroll
      for (int i = 1; i < most; ++i) {
        if (keys[i] <= key) continue;
        key = keys[i];
        expert = lane + 32 * i;
      }
      const std::uint32_t top = __reduce_max_sync(full_warp, key);
      const int best = __reduce_min_sync(full_warp, key == top ? expert : routing.experts);
      if (lane == k)
        out = {unordered(top), min(best, routing.experts - 1)};  // one that exists, whatever comes
#pragma unroll
      for (int i = 0; i < most; ++i) {
        if (best == lane + 32 * i) keys[i] = 0;
      }
    }
    return out;
  }

  // For the kernel behind. Experts are read before this kernel has ended: each says for itself whether it is
  // there.
  __device__ void publish(const Choice& choice) const {
    if (lane < routing.active) __stcg(routing.chosen + lane, choice.expert);
    const float top = __shfl_sync(full_warp, choice.logit, 0);
    const float share = lane < routing.active ? expf(choice.logit - top) : 0.0f;
    float sum = share;
    if (!routing.renormalizes) {
      sum = 0.0f;
#pragma unroll
      for (int i = 0; i < most; ++i) sum += lane + 32 * i < routing.experts ? expf(logits[i] - top) : 0.0f;
    }
    sum = warp_sum(sum);
    if (lane < routing.active) __stcg(routing.shares + lane, share / sum);
  }
};

}  // namespace inferno::cuda
