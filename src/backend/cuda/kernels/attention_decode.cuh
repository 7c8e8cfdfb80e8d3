// What attention_decode.cu works on, and how the results of its warps, then those of its blocks, become one.
#pragma once

#include <cuda_bf16.h>

#include "backend/cuda/device/cache_rows.cuh"
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels.h"

namespace inferno::cuda::decode {

constexpr int warps = 4, tile = 16, most_heads = 8, stretch_least = 128;

struct DecodeCall {
  CacheMap map;
  Elements out;
  const float* qkv;
  const float *table, *q_norm, *k_norm, *sinks;
  __nv_bfloat16 *keys, *values;
  const std::int32_t* slots;
  int heads, kv_heads, half, chunks, splits;  // half: of the dimensions that rotate
  float scale, epsilon;
  bool normalizes;
  float* partial;
  std::uint32_t* tickets;
};

template <int Dim>
struct DecodeRoom {
  static constexpr int value_row = Dim + 8;  // padded, so that transposed loads meet no bank twice
  union OfWarp {
    __nv_bfloat16 values[2][tile][value_row];
    float results[most_heads][Dim + 2];  // values, then the largest score and the sum of weights
  };
  static constexpr std::int64_t result_stride = sizeof(OfWarp) / sizeof(float);
  OfWarp of_warp[warps];
  __nv_bfloat16 queries[most_heads][Dim + 8];
  __nv_bfloat16 new_key[Dim], new_value[Dim];
  float shares[most_heads][attend_most_splits + 1];
  bool last;
};

struct DecodePlace {
  int row, kv_head, first_head, heads, chunk, split, splits, own, first, begin, end;
};

// How much each of `count` results (`stride` floats apart) counts for a head, and their sum: a warp for each
// head. With the sink when these are the last.
template <int Dim>
__device__ void weigh(const float* results, std::int64_t stride, int count, const float* sink,
                      DecodeRoom<Dim>& room, int head, int lane) {
  const float* own = results + head * (Dim + 2);
  const float top = lane < count ? own[lane * stride + Dim] : -INFINITY;
  const float sum = lane < count ? own[lane * stride + Dim + 1] : 0.0f;
  float most = warp_max(top);
  if (sink != nullptr) most = fmaxf(most, *sink);
  const float share = top == -INFINITY ? 0.0f : expf(top - most);
  float total = warp_sum(share * sum);
  if (sink != nullptr) total += expf(*sink - most);
  room.shares[head][lane] = share;
  if (lane == 0) room.shares[head][attend_most_splits] = total;
}

template <int Dim>
__device__ float weighted(const float* results, std::int64_t stride, int count, const DecodeRoom<Dim>& room,
                          int head, int d) {
  float sum = 0.0f;
#pragma unroll 8
  for (int i = 0; i < count; ++i) {
    sum += room.shares[head][i] * results[i * stride + head * (Dim + 2) + d];
  }
  return sum;
}

template <int Dim>
__device__ void write_out(const DecodeCall& call, const DecodePlace& at, DecodeRoom<Dim>& room,
                          const float* results, std::int64_t stride, int count) {
  const int thread = static_cast<int>(threadIdx.x);
  for (int h = thread / 32; h < at.heads; h += warps) {
    const float* sink = call.sinks == nullptr ? nullptr : call.sinks + at.first_head + h;
    weigh<Dim>(results, stride, count, sink, room, h, thread % 32);
  }
  __syncthreads();
  for (int i = thread; i < at.heads * Dim; i += 32 * warps) {
    const int h = i / Dim, d = i % Dim;
    const float value = weighted<Dim>(results, stride, count, room, h, d);
    call.out.put((std::int64_t{at.row} * call.heads + at.first_head + h) * Dim + d,
                 value / room.shares[h][attend_most_splits]);
  }
}

// This block's share to scratch memory; true for the one that comes last, which then sees all of them.
template <int Dim>
__device__ bool leave_share(const DecodeCall& call, const DecodePlace& at, DecodeRoom<Dim>& room,
                            float* mine) {
  const int thread = static_cast<int>(threadIdx.x);
  const float* results = room.of_warp[0].results[0];
  constexpr std::int64_t stride = DecodeRoom<Dim>::result_stride;
  for (int h = thread / 32; h < at.heads; h += warps) {
    const float* own = results + h * (Dim + 2);
    float most = -INFINITY, sum = 0.0f;
    for (int w = 0; w < warps; ++w) most = fmaxf(most, own[w * stride + Dim]);
    for (int w = 0; w < warps; ++w) {
      const float top = own[w * stride + Dim];
      const float share = top == -INFINITY ? 0.0f : expf(top - most);
      sum += share * own[w * stride + Dim + 1];
      if (thread % 32 == w) room.shares[h][w] = share;
    }
    __syncwarp();
    for (int d = thread % 32; d < Dim; d += 32) {
      float value = 0.0f;
      for (int w = 0; w < warps; ++w) value += room.shares[h][w] * own[w * stride + d];
      __stcg(mine + h * (Dim + 2) + d, value);
    }
    if (thread % 32 == 0) {
      __stcg(mine + h * (Dim + 2) + Dim, most);
      __stcg(mine + h * (Dim + 2) + Dim + 1, sum);
    }
  }
  __threadfence();
  __syncthreads();
  if (thread == 0) {
    const auto others = static_cast<std::uint32_t>(at.splits - 1);
    room.last = atomicInc(&call.tickets[blockIdx.x], others) == others;  // wraps to zero for the next launch
    __threadfence();
  }
  __syncthreads();
  return room.last;
}

}  // namespace inferno::cuda::decode
