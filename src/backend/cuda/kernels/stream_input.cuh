// The start of a stream kernel: the input vectors in shared memory as the codec wants them, the norm that
// the kernel before left undone, and the choice of experts.
#pragma once

#include <cuda_fp16.h>

#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels/stream_call.cuh"

namespace inferno::cuda {

// A lane's part of the squares, and 1 / rms when all lanes have theirs.
__device__ inline float squares_of_lane(const DelayedNorm& norm, int lane) {
  float sum = 0.0f;
  if (norm.squares == nullptr) return sum;
  constexpr int at_once = 5;  // loads on their way together
  for (int first = lane; first < norm.parts; first += 32 * at_once) {
    float values[at_once];
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      values[i] = first + 32 * i < norm.parts ? __ldcg(norm.squares + first + 32 * i) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < at_once; ++i) sum += values[i];
  }
  return sum;
}
__device__ inline float inverse_rms(const DelayedNorm& norm, float part) {
  if (norm.squares == nullptr) return 1.0f;
  return rsqrtf(warp_sum(part) / static_cast<float>(norm.width) + norm.epsilon);
}

__device__ inline void load_eight(float (&out)[8], const StreamCall& call, int chunk) {
  if (call.in_is_wide) {
    const auto* from = reinterpret_cast<const float4*>(call.in) + 2 * chunk;
    const float4 a = __ldcg(from), b = __ldcg(from + 1);
    out[0] = a.x, out[1] = a.y, out[2] = a.z, out[3] = a.w;
    out[4] = b.x, out[5] = b.y, out[6] = b.z, out[7] = b.w;
    return;
  }
  const uint4 words = __ldcg(reinterpret_cast<const uint4*>(call.in) + chunk);
  const std::uint32_t pairs[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    out[2 * i] = low_of(pairs[i]);
    out[2 * i + 1] = high_of(pairs[i]);
  }
}

__device__ inline std::uint32_t half_pair(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

// A power of two that brings numbers up to `top` close to the end of f16's range, and its inverse: a block's
// values then keep eleven bits however large or small they are.
__device__ inline float2 f16_scale(float top) {
  const int exponent = static_cast<int>(__float_as_uint(top) >> 23 & 255u);
  const int up = min(max(14 + 127 - exponent, -100), 100);
  return {__uint_as_float(static_cast<std::uint32_t>(127 + up) << 23),
          __uint_as_float(static_cast<std::uint32_t>(127 - up) << 23)};
}

// Eight elements of a block, of which four neighbouring lanes hold the others, as f16 with a factor.
template <bool Sums>
__device__ uint4 scaled_chunk(const float (&x)[8], const StreamRoom& room, int chunk, bool exists) {
  float top = 0.0f;
#pragma unroll
  for (int i = 0; i < 8; ++i) top = fmaxf(top, fabsf(x[i]));
  top = fmaxf(top, __shfl_xor_sync(full_warp, top, 1));
  top = fmaxf(top, __shfl_xor_sync(full_warp, top, 2));
  const float2 scale = f16_scale(top);
  std::uint32_t pairs[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) pairs[i] = half_pair(x[2 * i] * scale.x, x[2 * i + 1] * scale.x);
  if (exists && chunk % 4 == 0) room.factors[chunk / 4] = scale.y;
  if constexpr (Sums) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 both = __half22float2(*reinterpret_cast<const __half2*>(&pairs[i]));
      sum += both.x + both.y;
    }
    sum += __shfl_xor_sync(full_warp, sum, 1);
    sum += __shfl_xor_sync(full_warp, sum, 2);
    if (exists && chunk % 4 == 0) room.sums[chunk / 4] = sum * scale.y;
  }
  return make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}

// `Scaled`: f16 with a factor for each block, otherwise bf16. Several chunks are asked for before the first
// is used.
template <bool Scaled, bool Sums>
__device__ void stage_input(const StreamCall& call, const StreamRoom& room, int thread) {
  constexpr int at_once = 4;
  const int chunks = call.vectors * call.cols / 8;
  for (int first = 0; first < chunks; first += at_once * stream_threads) {
    float x[at_once][8] = {};
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      const int chunk = first + j * stream_threads + thread;
      if (chunk < chunks) load_eight(x[j], call, chunk);
    }
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      const int chunk = first + j * stream_threads + thread;
      if (first + j * stream_threads >= chunks) break;
      uint4 words;
      if constexpr (Scaled) {
        words = scaled_chunk<Sums>(x[j], room, chunk, chunk < chunks);
      } else {
        words = make_uint4(packed(x[j][0], x[j][1]), packed(x[j][2], x[j][3]), packed(x[j][4], x[j][5]),
                           packed(x[j][6], x[j][7]));
      }
      if (chunk < chunks) reinterpret_cast<uint4*>(room.in)[chunk] = words;
    }
  }
}

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
    routing.chosen[lane] = chosen;
    routing.shares[lane] = share / sum;
  }
}

// All threads of the block. Every block adds up the logits for itself: that is faster than waiting for one
// that does.
__device__ inline void route_here(const StreamCall& call, const StreamRoom& room, float square_part) {
  const Routing& routing = call.routing;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
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
  __syncthreads();
  if (thread < routing.experts) {
    float sum = 0.0f;
#pragma unroll 16
    for (int i = 0; i < groups; ++i) sum += room.reduced[i * routing.experts + thread];
    room.small[thread] = sum * inverse + bias;
  }
  __syncthreads();
  if (thread < 32) choose(routing, room.small, room, lane);
  __syncthreads();
}

// The experts that the kernel before chose.
__device__ inline void read_choice(const StreamCall& call, const StreamRoom& room) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < call.active) {
    room.chosen[thread] = __ldcg(call.experts + thread);
    room.shares[thread] = __ldcg(call.shares + thread);
  }
  __syncthreads();
}

}  // namespace inferno::cuda
