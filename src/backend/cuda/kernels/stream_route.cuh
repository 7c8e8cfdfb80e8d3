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

// A lane of the warp that chooses: its expert, and how much that one counts if it were the largest of all.
struct Choice {
  float logit = 0.0f;
  std::int32_t expert = 0;

  __device__ static Choice make(const Routing& routing, const float* logits, int lane) {
    Choice out;
    Candidates own = {logits, routing.experts, lane};
    own.find(0xFFFFFFFFu, routing.experts);
    for (int k = 0; k < routing.active; ++k) {
      const std::uint32_t most = __reduce_max_sync(full_warp, own.key);
      const int expert = __reduce_min_sync(full_warp, own.key == most ? own.expert : routing.experts);
      // Logits that are not numbers choose nobody; an expert that exists keeps the kernels behind safe.
      if (lane == k) out = {unordered(most), min(expert, routing.experts - 1)};
      if (own.expert != expert) continue;
      if (routing.experts <= 32) {
        own.key = 0;
      } else {
        own.find(most, expert);
      }
    }
    return out;
  }

  // For the kernel behind. Experts are read before this kernel has ended: each says for itself whether it is
  // there.
  __device__ void publish(const Routing& routing, const float* logits, int lane) const {
    if (lane < routing.active) __stcg(routing.chosen + lane, expert);
    const float top = __shfl_sync(full_warp, logit, 0);
    const float share = lane < routing.active ? expf(logit - top) : 0.0f;
    float sum = share;
    if (!routing.renormalizes) {
      sum = 0.0f;
      for (int e = lane; e < routing.experts; e += 32) sum += expf(logits[e] - top);
    }
    sum = warp_sum(sum);
    if (lane < routing.active) __stcg(routing.shares + lane, share / sum);
  }
};

// A thread's part of the logits of one expert, asked for before anything else.
struct RouterSums {
  static constexpr int at_once = 9;
  float values[at_once] = {};
  float bias = 0.0f;  // of expert number `thread`

  __device__ static int groups(const Routing& routing) { return max(1, stream_threads / routing.experts); }
  __device__ void load_bias(const Routing& routing, int thread) {
    if (thread < routing.experts && routing.bias != nullptr) bias = __ldg(routing.bias + thread);
  }
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
// that does. room.inverse was written before. Behind it the choice lies in shared memory, but other warps
// have to be told.
__device__ inline Choice route_here(const StreamCall& call, const StreamRoom& room, const RouterSums& logits,
                                    int thread) {
  const Routing& routing = call.routing;
  const int groups = RouterSums::groups(routing);
  if (thread / routing.experts < groups) room.reduced[thread] = logits.sum(routing, thread);
  sync_multipliers();
  if (thread < routing.experts) {
    float sum = 0.0f;
#pragma unroll 16
    for (int i = 0; i < groups; ++i) sum += room.reduced[i * routing.experts + thread];
    room.small[thread] = sum * *room.inverse + logits.bias;
  }
  if (routing.experts > 32) {
    sync_multipliers();
  } else {
    __syncwarp();
  }
  Choice choice;
  if (thread < 32) {
    choice = Choice::make(routing, room.small, thread);
    if (thread < routing.active) room.chosen[thread] = choice.expert;
  }
  return choice;
}

}  // namespace inferno::cuda
