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

// The warps that multiply. Every block adds up the logits for itself: that is faster than waiting for one that
// does. Behind it the choice lies in shared memory, but other warps have to be told.
__device__ inline void route_here(const StreamCall& call, const StreamRoom& room, float square_part,
                                  int thread) {
  const Routing& routing = call.routing;
  const int lane = thread % 32;
  const int groups = max(1, stream_threads / routing.experts);
  const int group = thread / routing.experts, expert = thread % routing.experts;
  if (group < groups) {
    constexpr int at_once = 9;  // loads on their way together
    const float* from = routing.parts.logits + expert;
    float sum = 0.0f;
    for (int first = group; first < routing.parts.parts; first += at_once * groups) {
      float values[at_once];
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        const int part = first + i * groups;
        values[i] = part < routing.parts.parts ? __ldcg(from + part * routing.experts) : 0.0f;
      }
#pragma unroll
      for (int i = 0; i < at_once; ++i) sum += values[i];
    }
    room.reduced[group * routing.experts + expert] = sum;
  }
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
  if (thread < 32) choose(routing, room.small, room, lane);
}

// The experts that the kernel before chose.
__device__ inline void read_choice(const StreamCall& call, const StreamRoom& room, int thread) {
  if (thread >= call.active) return;
  room.chosen[thread] = __ldcg(call.experts + thread);
  room.shares[thread] = __ldcg(call.shares + thread);
}

}  // namespace inferno::cuda
