// The choice of experts at the start of a stream kernel.
#pragma once

#include "backend/cuda/kernels/stream_input.cuh"

namespace inferno::cuda {

// Unsigned numbers in the order of floats.
__device__ inline std::uint32_t ordered(float value) {
  const std::uint32_t bits = __float_as_uint(value);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
__device__ inline float unordered(std::uint32_t key) {
  return __uint_as_float((key & 0x80000000u) != 0 ? key & 0x7FFFFFFFu : ~key);
}

// One warp: the experts of the largest logits, the lower number first where they are equal. A lane keeps the
// best of its own experts that are still to be had.
struct Candidates {
  const float* logits;
  int experts, lane;
  std::uint32_t key = 0;
  int expert = 0;

  __device__ void find(std::uint32_t below, int behind) {
    key = 0;
    expert = experts;
    for (int e = lane; e < experts; e += 32) {
      const std::uint32_t own = ordered(logits[e]);
      const bool free = own < below || (own == below && e > behind);
      if (free && own > key) {
        key = own;
        expert = e;
      }
    }
  }
};

__device__ inline void choose(const Routing& routing, const float* logits, const StreamRoom& room, int lane) {
  Candidates own = {logits, routing.experts, lane};
  own.find(0xFFFFFFFFu, routing.experts);
  float logit = 0.0f;
  int chosen = 0;
  for (int k = 0; k < routing.active; ++k) {
    const std::uint32_t most = __reduce_max_sync(full_warp, own.key);
    const int expert = __reduce_min_sync(full_warp, own.key == most ? own.expert : routing.experts);
    if (lane == k) {
      logit = unordered(most);
      // Logits that are not numbers choose nobody; an expert that exists keeps the kernels behind safe.
      chosen = min(expert, routing.experts - 1);
    }
    if (own.expert != expert) continue;
    if (routing.experts <= 32) {
      own.key = 0;
    } else {
      own.find(most, expert);
    }
  }
  const float top = __shfl_sync(full_warp, logit, 0);
  const float share = lane < routing.active ? expf(logit - top) : 0.0f;
  float sum = share;
  if (!routing.renormalizes) {
    sum = 0.0f;
    for (int e = lane; e < routing.experts; e += 32) sum += expf(logits[e] - top);
  }
  sum = warp_sum(sum);
  if (lane >= routing.active) return;
  room.chosen[lane] = chosen;
  room.shares[lane] = share / sum;
  if (blockIdx.x == 0) {
    __stcg(routing.shares + lane, share / sum);
    __stcg(routing.chosen + lane, chosen);  // read before this kernel has ended
    __threadfence();
  }
}

// A thread's part of the logits of one expert, asked for before anything else.
struct RouterSums {
  static constexpr int at_once = 9;
  float values[at_once] = {};

  __device__ static int groups(const Routing& routing) { return max(1, stream_threads / routing.experts); }
  __device__ void load(const Routing& routing, int thread) {
    const int group = thread / routing.experts;
    if (group >= groups(routing)) return;
    const float* from = routing.parts.logits + thread % routing.experts;
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      const int part = group + i * groups(routing);
      if (part < routing.parts.parts) values[i] = __ldcg(from + part * routing.experts);
    }
  }
  // Parts beyond those that were asked for early are read here.
  __device__ float sum(const Routing& routing, int thread) const {
    float out = 0.0f;
#pragma unroll
    for (int i = 0; i < at_once; ++i) out += values[i];
    const int step = groups(routing);
    for (int part = thread / routing.experts + at_once * step; part < routing.parts.parts; part += step) {
      out += __ldcg(routing.parts.logits + part * routing.experts + thread % routing.experts);
    }
    return out;
  }
};

// The warps that multiply. Every block adds up the logits for itself: that is faster than waiting for one
// that does. Behind it the choice lies in shared memory, but other warps have to be told.
__device__ inline void route_here(const StreamCall& call, const StreamRoom& room, const RouterSums& logits,
                                  float square_part, int thread) {
  const Routing& routing = call.routing;
  const int groups = RouterSums::groups(routing);
  if (thread / routing.experts < groups) room.reduced[thread] = logits.sum(routing, thread);
  const float inverse = inverse_rms(call.norm, square_part);
  const float bias =
      thread < routing.experts && routing.bias != nullptr ? __ldg(routing.bias + thread) : 0.0f;
  sync_multipliers();
  if (thread < routing.experts) {
    float sum = 0.0f;
#pragma unroll 16
    for (int i = 0; i < groups; ++i) sum += room.reduced[i * routing.experts + thread];
    room.small[thread] = sum * inverse + bias;
  }
  if (routing.experts > 32) {
    sync_multipliers();
  } else {
    __syncwarp();
  }
  if (thread < 32) choose(routing, room.small, room, thread);
}

// The experts that the kernel before chose.
__device__ inline void read_choice(const StreamCall& call, const StreamRoom& room, int thread) {
  if (thread >= call.active) return;
  room.chosen[thread] = __ldcg(call.experts + thread);
  room.shares[thread] = __ldcg(call.shares + thread);
}

}  // namespace inferno::cuda
