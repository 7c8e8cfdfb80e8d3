// Prefill attention on tensor cores (mma.sync), FlashAttention 2: a block takes 64 queries of one sequence
// and one head and iterates over the visible keys, 64 at a time, with an online softmax. Four warps take 16
// queries each. Keys and values are double-buffered in shared memory, swizzled as in gemm.cu. Those of other
// types than bf16 are rounded to it on their way there.
#include <limits>

#include "backend/cuda/device/ptx.cuh"
#include "backend/cuda/kernels/attention/attention.h"
#include "backend/cuda/kernels/attention/attention_queries.cuh"
#include "backend/cuda/kernels/launch.cuh"

namespace inferno::cuda {
namespace {

constexpr int tile = 64, threads = 128;
// Sequences of at most this many rows would leave the tiles of attention_hopper.cu mostly empty.
constexpr int few_rows = 16;

template <int Dims>
struct TileSmem {
  static constexpr int chunks = Dims / 8, row_bytes = Dims * 2, tile_bytes = tile * row_bytes;
  static constexpr std::size_t bytes = 5 * tile_bytes;  // queries, two stages of keys and values
  std::byte* start;
  __device__ static int at(int row, int chunk) { return row * row_bytes + (chunk ^ (row & 7)) * 16; }
  __device__ std::byte* queries() const { return start; }
  __device__ std::byte* keys(int stage) const { return start + (1 + 2 * stage) * tile_bytes; }
  __device__ std::byte* values(int stage) const { return start + (2 + 2 * stage) * tile_bytes; }
};

template <int Dims>
__device__ void load_queries(const TilesCall& call, const Queries& queries, const TileSmem<Dims>& smem,
                             int head) {
  for (int i = static_cast<int>(threadIdx.x); i < tile * smem.chunks; i += threads) {
    const int row = i / smem.chunks, chunk = i % smem.chunks;
    *reinterpret_cast<uint4*>(smem.queries() + smem.at(row, chunk)) =
        query_run(call, queries, row, head, chunk * 8);
  }
}

// Eight elements of a head, or zeros.
__device__ void load_run(std::byte* to, const Cached& cache, std::int64_t row, int kv_head, int first,
                         bool wanted) {
  if (cache.type == DType::bf16) {
    const std::byte* from =
        cache.data + (wanted ? row * cache.row_bytes + kv_head * cache.head_bytes + first * 2 : 0);
    return cp_async(to, from, wanted);
  }
  float values[8] = {};
  if (wanted) {
    with_cached_type(cache.type, [&]<DType Type>(CachedHead<Type>) {
      CachedHead<Type>{cache.head(row, kv_head), cache.scale(kv_head)}.run(values, first);
    });
  }
  *reinterpret_cast<uint4*>(to) =
      make_uint4(pack_bf16x2(values[0], values[1]), pack_bf16x2(values[2], values[3]),
                 pack_bf16x2(values[4], values[5]), pack_bf16x2(values[6], values[7]));
}

// Keys and values of 64 positions from `first` on. Positions that no query of the tile sees are zero-filled:
// a freed cache block may hold NaN, and NaN times zero is NaN.
template <int Dims>
__device__ void load_positions(const TilesCall& call, const Queries& queries, const TileSmem<Dims>& smem,
                               int stage, int first, int kv_head) {
  const int visible = call.map.first_visible(queries.first_position);
  for (int i = static_cast<int>(threadIdx.x); i < tile * smem.chunks; i += threads) {
    const int row = i / smem.chunks, chunk = i % smem.chunks, position = first + row;
    const bool wanted = position >= visible && position <= queries.last_position && chunk * 8 < call.head_dim;
    const std::int64_t source = wanted ? call.map.row(queries.sequence, position) : 0;
    load_run(smem.keys(stage) + smem.at(row, chunk), call.keys, source, kv_head, chunk * 8, wanted);
    load_run(smem.values(stage) + smem.at(row, chunk), call.values, source, kv_head, chunk * 8, wanted);
  }
}

// A lane's softmax state for 16 queries: rows g and g + 8 as in ptx.cuh.
template <int Dims>
struct SoftmaxState {
  float values[Dims / 8][4];
  float top[2], sum[2];
  int own[2];  // positions of the two queries; -1 if there is none
};

using Scores = float[tile / 8][4];

template <int Dims>
__device__ void score(Scores& scores, const TileSmem<Dims>& smem, int stage, int warp, int lane) {
#pragma unroll
  for (int k = 0; k < Dims / 16; ++k) {
    std::uint32_t q[4];
    ldmatrix(q, smem.queries() + smem.at(warp * 16 + lane % 16, 2 * k + lane / 16));
#pragma unroll
    for (int j = 0; j < tile / 16; ++j) {
      std::uint32_t b[4];
      ldmatrix(b, smem.keys(stage) + smem.at(16 * j + lane % 8 + lane / 16 * 8, 2 * k + lane / 8 % 2));
      mma_bf16(scores[2 * j], q[0], q[1], q[2], q[3], b[0], b[1]);
      mma_bf16(scores[2 * j + 1], q[0], q[1], q[2], q[3], b[2], b[3]);
    }
  }
}

// Turns scores into weights in place and rescales earlier sums to the new maximum.
template <int Dims>
__device__ void softmax(Scores& scores, SoftmaxState<Dims>& state, const TilesCall& call, int first,
                        int lane) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int own = state.own[half], oldest = own < 0 ? 0 : call.map.first_visible(own);
    float top = state.top[half];
#pragma unroll
    for (int j = 0; j < tile / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int position = first + 8 * j + 2 * (lane % 4) + i;
        float& s = scores[j][2 * half + i];
        s = position <= own && position >= oldest ? s * call.scale : -INFINITY;
        top = fmaxf(top, s);
      }
    }
    top = fmaxf(top, __shfl_xor_sync(0xFFFFFFFFu, top, 1));
    top = fmaxf(top, __shfl_xor_sync(0xFFFFFFFFu, top, 2));
    const float base = top == -INFINITY ? 0.0f : top;  // no visible key so far
    const float rescale = __expf(state.top[half] - base);
    state.top[half] = top;
    state.sum[half] *= rescale;
#pragma unroll
    for (int j = 0; j < tile / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float& s = scores[j][2 * half + i];
        s = __expf(s - base);
        state.sum[half] += s;
      }
    }
#pragma unroll
    for (int n = 0; n < Dims / 8; ++n) {
      state.values[n][2 * half] *= rescale;
      state.values[n][2 * half + 1] *= rescale;
    }
  }
}

template <int Dims>
__device__ void add_values(SoftmaxState<Dims>& state, const Scores& weights, const TileSmem<Dims>& smem,
                           int stage, int lane) {
#pragma unroll
  for (int k = 0; k < tile / 16; ++k) {
    const std::uint32_t a0 = pack_bf16x2(weights[2 * k][0], weights[2 * k][1]);
    const std::uint32_t a1 = pack_bf16x2(weights[2 * k][2], weights[2 * k][3]);
    const std::uint32_t a2 = pack_bf16x2(weights[2 * k + 1][0], weights[2 * k + 1][1]);
    const std::uint32_t a3 = pack_bf16x2(weights[2 * k + 1][2], weights[2 * k + 1][3]);
#pragma unroll
    for (int n = 0; n < Dims / 16; ++n) {
      std::uint32_t b[4];
      ldmatrix_trans(b, smem.values(stage) + smem.at(16 * k + lane % 16, 2 * n + lane / 16));
      mma_bf16(state.values[2 * n], a0, a1, a2, a3, b[0], b[1]);
      mma_bf16(state.values[2 * n + 1], a0, a1, a2, a3, b[2], b[3]);
    }
  }
}

template <int Dims>
__device__ void write_out(const TilesCall& call, const Queries& queries, const SoftmaxState<Dims>& state,
                          int head, int warp, int lane) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = state.sum[half];
    sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
    sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
    const int row = warp * 16 + lane / 4 + 8 * half;
    if (row >= queries.count) continue;
    float factor = 1.0f / sum;
    if (call.sinks != nullptr) {
      const float sink = call.sinks[head], top = fmaxf(state.top[half], sink);
      const float rescale = __expf(state.top[half] - top);
      factor = rescale / (sum * rescale + __expf(sink - top));
    }
    const std::int64_t to = (std::int64_t{queries.first + row} * call.heads + head) * call.head_dim;
#pragma unroll
    for (int n = 0; n < Dims / 8; ++n) {
      const int d = 8 * n + 2 * (lane % 4);
      if (d >= call.head_dim) continue;
      *reinterpret_cast<std::uint32_t*>(call.out + (to + d) * 2) =
          pack_bf16x2(state.values[n][2 * half] * factor, state.values[n][2 * half + 1] * factor);
    }
  }
}

template <int Dims>
__global__ void __launch_bounds__(threads) attend_tiles_kernel(const __grid_constant__ TilesCall call) {
  extern __shared__ __align__(128) std::byte shared[];
  const TileSmem<Dims> smem = {shared};
  wait_for_previous();
  let_next_start();
  const Queries queries = queries_of(call, static_cast<int>(blockIdx.x), tile);
  if (queries.sequence < 0) return;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int head = static_cast<int>(blockIdx.y), kv_head = call.kv_head_of(head);
  const int begin = call.map.first_visible(queries.first_position) / tile * tile;
  SoftmaxState<Dims> state = {};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = warp * 16 + lane / 4 + 8 * half;
    state.top[half] = -INFINITY;
    state.own[half] = row < queries.count ? call.map.positions[queries.first + row] : -1;
  }
  load_queries(call, queries, smem, head);
  load_positions(call, queries, smem, 0, begin, kv_head);
  cp_async_commit_group();
  int stage = 0;
  for (int first = begin; first <= queries.last_position; first += tile, stage ^= 1) {
    if (first + tile <= queries.last_position) {
      load_positions(call, queries, smem, stage ^ 1, first + tile, kv_head);
    }
    cp_async_commit_group();
    cp_async_wait_group<1>();
    __syncthreads();
    Scores scores = {};
    score(scores, smem, stage, warp, lane);
    softmax(scores, state, call, first, lane);
    add_values(state, scores, smem, stage, lane);
    __syncthreads();  // the stage may be overwritten by the next copies
  }
  write_out(call, queries, state, head, warp, lane);
}

template <int Dims>
void start(const Queue& queue, const TilesCall& call, unsigned tiles) {
  constexpr std::size_t bytes = TileSmem<Dims>::bytes;
  check(cudaFuncSetAttribute(attend_tiles_kernel<Dims>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bytes)));
  launch(queue, {.grid = dim3(tiles, static_cast<unsigned>(call.heads)), .threads = threads, .shared = bytes},
         attend_tiles_kernel<Dims>, call);
}

void start_tiles(const Queue& queue, const TilesCall& call, int tiles) {
  if (call.head_dim <= 64) return start<64>(queue, call, static_cast<unsigned>(tiles));
  start<128>(queue, call, static_cast<unsigned>(tiles));
}

TilesCall call_of(Matrix out, Matrix qkv, const AttentionCall& call, int decodes) {
  const AttentionSpec& spec = call.spec;
  return {.map = cache_map(call, decodes),
          .qkv = elements_of(qkv),
          .keys = cached(call.cache.keys, call.weights.key_scales, spec.head_dim),
          .values = cached(call.cache.values, call.weights.value_scales, spec.head_dim),
          .out = out.data,
          .sinks = spec.sinks ? floats_of(call.weights.sinks) : nullptr,
          .heads = spec.heads,
          .kv_heads = spec.kv_heads,
          .head_dim = spec.head_dim,
          .qkv_cols = qkv.cols,
          .scale = spec.scale,
          .min_rows = 1,
          .max_rows = std::numeric_limits<int>::max()};
}

}  // namespace

void attend_tiles(const Queue& queue, Matrix out, Matrix qkv, const AttentionCall& call, int decodes) {
  const TilesCall tiles = call_of(out, qkv, call, decodes);
  start_tiles(queue, tiles, (out.rows - decodes) / tile + tiles.map.sequences);
}

void attend_hopper(const Queue& queue, Matrix out, Matrix qkv, const AttentionCall& call, int decodes) {
  start_hopper(queue, call_of(out, qkv, call, decodes), out.rows - decodes);
}

void attend_hopper_and_tiles(const Queue& queue, Matrix out, Matrix qkv, const AttentionCall& call,
                             int decodes) {
  TilesCall large = call_of(out, qkv, call, decodes);
  large.min_rows = few_rows + 1;
  start_hopper(queue, large, out.rows - decodes);
  TilesCall small = call_of(out, qkv, call, decodes);
  small.max_rows = few_rows;
  start_tiles(queue, small, small.map.sequences);
}

}  // namespace inferno::cuda
