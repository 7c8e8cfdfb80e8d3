// What attention_decode.cu works on: its arguments, a block's share of them, its shared memory, and the way
// of keys and values there.
#pragma once

#include <cuda_bf16.h>

#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/mma.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels.h"

namespace inferno::cuda::decode {

constexpr int warps = 4, most_heads = 8, most_cluster = 16;
constexpr float log2_e = 1.4426950408889634f;

struct DecodeCall {
  Elements out;
  const float* qkv;
  const float *table, *q_norm, *k_norm, *sinks;
  __nv_bfloat16 *keys, *values;
  const std::int32_t *slots, *positions, *block_table;
  int table_cols, block_shift, window;
  int heads, kv_heads, half, chunks, splits;  // half: of the dimensions that rotate; splits: a power of two
  float scale, epsilon;
  bool normalizes;
  int ahead;
  float* partial;
  std::uint32_t* tickets;
};

// Every warp takes `step` positions at a time: its keys are 32 registers of each lane, its values 4 KB.
template <int Dim>
struct DecodeShape {
  static constexpr int tiles = 128 / Dim;  // of 16 positions
  static constexpr int step = 16 * tiles, pass = warps * step;
};

// What a block found for half the dimensions of a head: sums of values under weights of 2^(score - top).
template <int Dim>
struct Part {
  float values[Dim / 2];
  float top, sum, unused[2];
};
constexpr int parts = 2 * most_heads;

template <int Dim>
struct DecodeRoom {
  union OfWarp {
    __nv_bfloat16 values[DecodeShape<Dim>::step * Dim];
    float results[most_heads * Dim];
  };
  OfWarp of_warp[warps];
  Part<Dim> received[parts];         // from the blocks of the cluster
  float2 tops[warps][most_heads];    // the largest score and the sum of weights
  __nv_bfloat16 new_key[Dim], new_value[Dim];
  float angles[Dim];
  bool last;
};

struct DecodePlace {
  int row, kv_head, first_head, heads, chunk, splits, own, begin, end;

  __device__ static int split() { return static_cast<int>(blockIdx.y); }
};

template <int Dim>
__device__ DecodePlace place_of(const DecodeCall& call) {
  DecodePlace at;
  const int groups = call.kv_heads * call.chunks, group = static_cast<int>(blockIdx.x) % groups;
  at.row = static_cast<int>(blockIdx.x) / groups;
  at.own = call.positions[at.row];
  at.kv_head = group / call.chunks;
  at.chunk = group % call.chunks;
  const int shared = call.heads / call.kv_heads;
  at.first_head = at.kv_head * shared + at.chunk * most_heads;
  at.heads = min(most_heads, (at.kv_head + 1) * shared - at.first_head);
  const int first = call.window > 0 ? max(0, at.own - call.window + 1) : 0;
  const int count = at.own + 1 - first, passes = (count + DecodeShape<Dim>::pass - 1) / DecodeShape<Dim>::pass;
  // A power of two, so that heads are dealt evenly. Nobody's stretch is empty: count > (splits - 1)^2.
  at.splits = min(call.splits, 1 << (32 - __clz(passes - 1)));
  const int each = (count + at.splits - 1) / at.splits;
  at.begin = first + at.split() * each;
  at.end = min(at.own + 1, at.begin + each);
  return at;
}

// Where a chunk of eight elements of a row of values lies, so that no bank is met twice by the eight rows
// that a transposed load reads.
template <int Dim>
__device__ __nv_bfloat16* value_chunk(__nv_bfloat16* values, int row, int chunk) {
  return values + row * Dim + (((chunk & 7) ^ (row & 7)) + (chunk & 8)) * 8;
}

// Likewise dimension d (a multiple of four when four are read at once) of a head's results.
template <int Dim>
__device__ float* result_at(float* results, int head, int d) {
  return results + head * Dim + (d ^ (head / 2 % 4 * 8));
}

// A warp's step of keys in registers as the tensor cores want them (lane (g, t): positions g, g + 8, ...),
// and its values, on their way to shared memory. Positions that are not there, or are new, give zeros.
template <int Dim>
struct DecodeStep {
  static constexpr int rows = 2 * DecodeShape<Dim>::tiles, chunks = Dim / 32;
  uint4 keys[rows][chunks];
  std::int32_t at_row[rows];
  int old;  // how many of the warp's positions, from its first on, are in the cache

  __device__ static std::int32_t row_of(const DecodeCall& call, const DecodePlace& at, int position) {
    const std::int32_t* table = call.block_table + std::int64_t{at.row} * call.table_cols;
    return (table[position >> call.block_shift] << call.block_shift) +
           (position & ((1 << call.block_shift) - 1));
  }
  __device__ static std::int64_t element_of(const DecodeCall& call, const DecodePlace& at, std::int32_t row) {
    return (std::int64_t{row} * call.kv_heads + at.kv_head) * Dim;
  }

  __device__ void find(const DecodeCall& call, const DecodePlace& at, int first, int lane) {
    old = min(at.end, at.own) - first;
#pragma unroll
    for (int i = 0; i < rows; ++i) at_row[i] = row_of(call, at, min(first + lane / 4 + 8 * i, at.own));
  }
  __device__ void fetch_keys(const DecodeCall& call, const DecodePlace& at, int lane) {
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      const auto* from = reinterpret_cast<const uint4*>(call.keys + element_of(call, at, at_row[i])) + lane % 4;
#pragma unroll
      for (int c = 0; c < chunks; ++c) {
        keys[i][c] = lane / 4 + 8 * i < old ? from[4 * c] : make_uint4(0, 0, 0, 0);
      }
    }
  }
  __device__ void fetch_values(const DecodeCall& call, const DecodePlace& at, __nv_bfloat16* values,
                               int lane) const {
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      const int row = lane / 4 + 8 * i;
      const __nv_bfloat16* from = call.values + element_of(call, at, at_row[i]) + lane % 4 * 8;
#pragma unroll
      for (int c = 0; c < chunks; ++c) {
        copy_later(value_chunk<Dim>(values, row, 4 * c + lane % 4), from + 32 * c, row < old);
      }
    }
    close_copies();
  }
  // The new position, if it is one of the warp's `step` from `first` on.
  __device__ void insert_new(const DecodePlace& at, const DecodeRoom<Dim>& room, int first,
                             __nv_bfloat16* values, int lane) {
    const int place = at.own - first;
    if (place >= DecodeShape<Dim>::step || at.end != at.own + 1) return;
    const auto* key = reinterpret_cast<const uint4*>(room.new_key);
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      if (lane / 4 + 8 * i != place) continue;
#pragma unroll
      for (int c = 0; c < chunks; ++c) keys[i][c] = key[4 * c + lane % 4];
    }
    if (lane < Dim / 8) {
      *reinterpret_cast<uint4*>(value_chunk<Dim>(values, place, lane)) =
          reinterpret_cast<const uint4*>(room.new_value)[lane];
    }
    __syncwarp();
  }
};

__device__ inline void prefetch(const void* address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

// Asks for a warp's step of old keys and values, as far as L2: a long stretch needs more on its way than
// registers and shared memory hold. Each lane asks for 32 bytes, the smallest piece that memory delivers.
template <int Dim>
__device__ void prefetch_step(const DecodeCall& call, const DecodePlace& at, int first, int lane) {
  const int old = min(at.end, at.own) - first;
#pragma unroll
  for (int i = 0; i < DecodeStep<Dim>::rows; ++i) {
    const int place = lane / 4 + 8 * i;
    if (place >= old) continue;
    const std::int32_t row = DecodeStep<Dim>::row_of(call, at, first + place);
    const std::int64_t element = DecodeStep<Dim>::element_of(call, at, row);
#pragma unroll
    for (int d = lane % 4 * 16; d < Dim; d += 64) {
      prefetch(call.keys + element + d);
      prefetch(call.values + element + d);
    }
  }
}

}  // namespace inferno::cuda::decode
