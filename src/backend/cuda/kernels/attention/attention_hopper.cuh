// The parts of attention_hopper.cu: shared memory, the producer warp group and the online softmax.
#pragma once

#include "backend/cuda/device/ptx.cuh"
#include "backend/cuda/device/tma.cuh"
#include "backend/cuda/device/wgmma.cuh"
#include "backend/cuda/kernels/attention/attention_queries.cuh"

namespace inferno::cuda::hopper_attention {

constexpr int group_threads = 128, group_warps = group_threads / 32;
constexpr int group_queries = 64, tile_keys = 128;
constexpr int row_bytes = 128;  // 64 dimensions; others are in a second half

template <int Dims>
struct Sizes {
  static constexpr int halves = Dims / 64;
  static constexpr int groups = Dims == 64 ? 3 : 2;  // consumer warp groups, as many as registers allow
  static constexpr int stages = Dims == 64 ? 4 : 3;  // of keys and values
  static constexpr int threads = (groups + 1) * group_threads;
  static constexpr int queries = groups * group_queries;
  static constexpr int query_half = group_queries * row_bytes, query_bytes = halves * query_half;
  static constexpr int key_half = tile_keys * row_bytes, key_bytes = halves * key_half;
  static constexpr int barriers = 2 * stages + groups;
  static constexpr int bytes = groups * query_bytes + 2 * stages * key_bytes + 8 * barriers;
};

template <int Dims>
struct Smem {
  using Size = Sizes<Dims>;
  std::byte* start;
  __device__ std::byte* queries(int group) const { return start + group * Size::query_bytes; }
  __device__ std::byte* keys(int stage) const {
    return start + Size::groups * Size::query_bytes + 2 * stage * Size::key_bytes;
  }
  __device__ std::byte* values(int stage) const { return keys(stage) + Size::key_bytes; }
  __device__ Mbarrier* full(int stage) const {
    return reinterpret_cast<Mbarrier*>(keys(Size::stages)) + stage;
  }
  __device__ Mbarrier* empty(int stage) const { return full(Size::stages + stage); }
  __device__ Mbarrier* group_barrier(int group) const { return full(2 * Size::stages + group); }

  __device__ void init_barriers() const {
    for (int s = 0; s < Size::stages; ++s) {
      mbarrier_init(full(s), group_threads);
      mbarrier_init(empty(s), Size::groups * group_warps * warp_arrivals);
    }
    for (int g = 0; g < Size::groups; ++g) mbarrier_init(group_barrier(g), group_warps * warp_arrivals);
    fence_proxy_async();
  }
};

// Offset of 16 bytes of a row under the 128-byte swizzle.
__device__ inline int swizzled(int row, int unit) {
  return row * row_bytes + (unit ^ (row & 7)) * 16;
}

// The key tiles that any query of the block sees.
struct Keys {
  int begin, tiles;
  __device__ Keys(const TilesCall& call, const Queries& queries)
      : begin(call.map.first_visible(queries.first_position) / tile_keys * tile_keys),
        tiles((queries.last_position - begin) / tile_keys + 1) {}
};

// The producer warp group. Rows are copied 16 bytes at a time through the block table. Positions that no
// query of the block sees are zero-filled: a freed cache block may hold NaN, and NaN times zero is NaN.
template <int Dims>
struct Producer {
  using Size = Sizes<Dims>;
  static constexpr int rows_at_once = group_threads / 8;
  const TilesCall& call;
  const Smem<Dims>& smem;
  PipelineState next = {0, 1};  // in the first round every stage is empty

  __device__ void run(const Queries& queries, int kv_head) {
    const Keys keys(call, queries);
    for (int tile = 0; tile < keys.tiles; ++tile) {
      mbarrier_wait(smem.empty(next.stage), next.parity);
      copy(next.stage, queries, keys.begin + tile * tile_keys, kv_head);
      mbarrier_arrive_after_cp_async(smem.full(next.stage));
      next.advance(Size::stages);
    }
  }

  __device__ void copy(int stage, const Queries& queries, int first, int kv_head) const {
    const int row = static_cast<int>(threadIdx.x) / 8, unit = static_cast<int>(threadIdx.x) % 8;
    const int visible = call.map.first_visible(queries.first_position);
    std::byte* to = smem.keys(stage) + swizzled(row, unit);  // the swizzle repeats every rows_at_once rows
#pragma unroll 4
    for (int i = 0; i < tile_keys; i += rows_at_once) {
      const int position = first + row + i;
      const bool seen = position >= visible && position <= queries.last_position;
      std::int64_t at = 0;
      if (seen) at = (call.map.row(queries.sequence, position) * call.kv_heads + kv_head) * call.head_dim;
#pragma unroll
      for (int half = 0; half < Size::halves; ++half) {
        const int dimension = 64 * half + 8 * unit;
        const bool wanted = seen && dimension < call.head_dim;
        const std::int64_t from = wanted ? (at + dimension) * 2 : 0;
        cp_async(to + half * Size::key_half + i * row_bytes, call.keys.data + from, wanted);
        cp_async(to + Size::key_bytes + half * Size::key_half + i * row_bytes, call.values.data + from,
                 wanted);
      }
    }
  }
};

using Scores = float[tile_keys / 2];               // accumulator layout of wgmma.cuh: rows g and g + 8
using Weights = std::uint32_t[tile_keys / 16][4];  // as bf16, one operand per 16 keys

// A lane's softmax state for a warp's sixteen queries.
template <int Dims>
struct SoftmaxState {
  float values[Dims / 64][32] = {};
  float top[2] = {-INFINITY, -INFINITY}, sum[2] = {};
  int own[2] = {};  // query positions; -1 if there is no query

  // Turns scores into weights 2^(factor * score) and rescales earlier sums to the new maximum.
  template <bool Masks>
  __device__ void softmax(Weights& weights, Scores& scores, const CacheMap& map, int first, float factor,
                          int lane) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if constexpr (Masks) mask(scores, map, first, lane, half);
      float largest = top[half];
#pragma unroll
      for (int i = 0; i < tile_keys / 4; ++i) largest = fmaxf(largest, scores[at(i, half)]);
      largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, 2));
      const float base = largest == -INFINITY ? 0.0f : largest * factor;  // no visible key so far
      const float rescale = exp2_of(top[half] * factor - base);
      top[half] = largest;
      float added = 0.0f;
#pragma unroll
      for (int i = 0; i < tile_keys / 4; ++i) {
        float& s = scores[at(i, half)];
        s = exp2_of(s * factor - base);
        added += s;
      }
      sum[half] = sum[half] * rescale + added;
#pragma unroll
      for (int n = 0; n < Dims / 64; ++n) {
#pragma unroll
        for (int i = 0; i < 16; ++i) values[n][at(i, half)] *= rescale;
      }
    }
#pragma unroll
    for (int k = 0; k < tile_keys / 16; ++k) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        weights[k][i] = pack_bf16x2(scores[8 * k + 2 * i], scores[8 * k + 2 * i + 1]);
      }
    }
  }

 private:
  // Index of the i-th element of row g (half 0) or g + 8 (half 1).
  __device__ static constexpr int at(int i, int half) { return i / 2 * 4 + 2 * half + i % 2; }
  __device__ void mask(Scores& scores, const CacheMap& map, int first, int lane, int half) const {
    const int oldest = own[half] < 0 ? 0 : map.first_visible(own[half]);
#pragma unroll
    for (int i = 0; i < tile_keys / 4; ++i) {
      const int position = first + i / 2 * 8 + 2 * (lane % 4) + i % 2;
      if (position > own[half] || position < oldest) scores[at(i, half)] = -INFINITY;
    }
  }
};

}  // namespace inferno::cuda::hopper_attention
