// What attention_decode.cu works on: its arguments, a block's share of them, its shared memory, and the way
// of keys and values there.
#pragma once

#include <cuda_bf16.h>

#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/mma.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels/attention/attention.h"

namespace inferno::cuda::decode {

constexpr int warps = 4, max_heads = 8, max_cluster = 16, max_clusters = 8;
constexpr float log2_e = 1.4426950408889634f;

struct DecodeCall {
  Elements out;
  const float* qkv;
  const float *table, *q_norm, *k_norm, *sinks;
  __nv_bfloat16 *keys, *values;
  const std::int32_t *slots, *positions, *block_table;
  int table_cols, block_shift, window;
  int heads, kv_heads, half, chunks;  // half: of the dimensions that rotate
  int splits, clusters;               // blocks of a cluster, a power of two; clusters for a group of heads
  float scale, epsilon;
  bool normalizes;
  float* partial;
  std::uint32_t* tickets;
};

// Every warp takes `step` positions at a time: its keys are 32 registers of each lane, its values 4 KB.
template <int Dim>
struct DecodeShape {
  static constexpr int tiles = 128 / Dim;  // of 16 positions
  static constexpr int step = 16 * tiles, pass = warps * step;
};

// Stretches: `splits` for each of `clusters` that have something to do.
struct DecodePlace {
  int row, kv_head, first_head, heads, chunk, splits, clusters, own, begin, end;

  __device__ static int split() { return static_cast<int>(blockIdx.y); }
  __device__ static int cluster() { return static_cast<int>(blockIdx.z); }
  __device__ bool idle() const { return split() >= splits || cluster() >= clusters; }
};

// What a block found for half the dimensions of a head: sums of values under weights of 2^(score - top).
template <int Dim>
struct Part {
  float values[Dim / 2];
  float top, sum, unused[2];
};
constexpr int parts = 2 * max_heads;

template <int Dim>
struct DecodeRoom {
  union OfWarp {
    __nv_bfloat16 values[DecodeShape<Dim>::step * Dim];
    float results[max_heads * Dim];
  };
  OfWarp of_warp[warps];
  Part<Dim> received[parts];      // from the blocks of the cluster
  float2 tops[warps][max_heads];  // the largest score and the sum of weights
  __nv_bfloat16 new_key[Dim], new_value[Dim];
  float angles[Dim];
  DecodePlace place;  // for the end: registers are short in between
  bool last;
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
  at.first_head = at.kv_head * shared + at.chunk * max_heads;
  at.heads = min(max_heads, (at.kv_head + 1) * shared - at.first_head);
  const int first = call.window > 0 ? max(0, at.own - call.window + 1) : 0;
  const int count = at.own + 1 - first,
            passes = (count + DecodeShape<Dim>::pass - 1) / DecodeShape<Dim>::pass;
  // A power of two, so that heads are dealt evenly. A second cluster costs a way through global memory, which
  // is worth four to eight passes. Nobody's stretch is empty: positions are more than stretches squared.
  at.splits = min(call.splits, 1 << (32 - __clz(passes - 1)));
  const bool is_long = passes > call.splits * (call.clusters > 2 ? 4 : 8);
  at.clusters = is_long ? min(call.clusters, passes / (2 * call.splits)) : 1;
  const int stretches = at.splits * at.clusters, each = (count + stretches - 1) / stretches;
  at.begin = first + (at.cluster() * at.splits + at.split()) * each;
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
  __device__ static const uint4* place_in(const __nv_bfloat16* cache, const DecodeCall& call, int kv_head,
                                          std::int32_t row) {
    return reinterpret_cast<const uint4*>(cache + kv_head * Dim + std::int64_t{row} * (call.kv_heads * Dim));
  }

  __device__ void find(const DecodeCall& call, const DecodePlace& at, int first, int lane) {
    old = min(at.end, at.own) - first;
#pragma unroll
    for (int i = 0; i < rows; ++i) at_row[i] = row_of(call, at, min(first + lane / 4 + 8 * i, at.own));
  }
  __device__ void fetch_keys(const DecodeCall& call, const DecodePlace& at, int lane) {
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      const uint4* from = place_in(call.keys, call, at.kv_head, at_row[i]) + lane % 4;
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
      const uint4* from = place_in(call.values, call, at.kv_head, at_row[i]) + lane % 4;
#pragma unroll
      for (int c = 0; c < chunks; ++c) {
        copy_later(value_chunk<Dim>(values, row, 4 * c + lane % 4), from + 4 * c, row < old);
      }
    }
    close_copies();
  }
  // The new position, if it is one of the warp's `step` from `first` on.
  __device__ static bool has_new(const DecodePlace& at, int first) {
    return at.own - first < DecodeShape<Dim>::step && at.end == at.own + 1;
  }
  __device__ void insert_key(const DecodePlace& at, const DecodeRoom<Dim>& room, int first, int lane) {
    if (!has_new(at, first)) return;
    const auto* key = reinterpret_cast<const uint4*>(room.new_key);
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      if (lane / 4 + 8 * i != at.own - first) continue;
#pragma unroll
      for (int c = 0; c < chunks; ++c) keys[i][c] = key[4 * c + lane % 4];
    }
  }
  __device__ static void insert_value(const DecodePlace& at, const DecodeRoom<Dim>& room, int first,
                                      __nv_bfloat16* values, int lane) {
    if (!has_new(at, first)) return;
    if (lane < Dim / 8) {
      *reinterpret_cast<uint4*>(value_chunk<Dim>(values, at.own - first, lane)) =
          reinterpret_cast<const uint4*>(room.new_value)[lane];
    }
    __syncwarp();
  }
};

}  // namespace inferno::cuda::decode
