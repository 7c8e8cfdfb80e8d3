// Attention for prompts, on tensor cores: a block takes 64 queries of one sequence and one head, and walks
// over the keys they can see, 64 at a time, keeping a running softmax. Four warps take 16 queries each. Keys
// and values come through shared memory in two stages, while the stage before is computed on. Rows lie there
// as in gemm.cu, their chunks of 16 bytes exchanged by the row's number.
#include <limits>

#include "backend/cuda/device/ptx.cuh"
#include "backend/cuda/kernels/attention/attention.h"
#include "backend/cuda/kernels/attention/attention_queries.cuh"
#include "backend/cuda/kernels/launch.cuh"

namespace inferno::cuda {
namespace {

constexpr int tile = 64, threads = 128;
constexpr int few_rows = 16;  // of a sequence: too few for the large tiles of attention_hopper.cu

template <int Dims>
struct TileRoom {
  static constexpr int chunks = Dims / 8, row_bytes = Dims * 2, tile_bytes = tile * row_bytes;
  static constexpr std::size_t bytes = 5 * tile_bytes;  // queries, two stages of keys and values
  std::byte* start;
  __device__ static int at(int row, int chunk) { return row * row_bytes + (chunk ^ (row & 7)) * 16; }
  __device__ std::byte* queries() const { return start; }
  __device__ std::byte* keys(int stage) const { return start + (1 + 2 * stage) * tile_bytes; }
  __device__ std::byte* values(int stage) const { return start + (2 + 2 * stage) * tile_bytes; }
};

template <int Dims>
__device__ void load_queries(const TilesCall& call, const Queries& queries, const TileRoom<Dims>& room,
                             int head) {
  for (int i = static_cast<int>(threadIdx.x); i < tile * room.chunks; i += threads) {
    const int row = i / room.chunks, chunk = i % room.chunks;
    *reinterpret_cast<uint4*>(room.queries() + room.at(row, chunk)) =
        query_run(call, queries, row, head, chunk * 8);
  }
}

// Keys and values of 64 positions from `first` on; zeros for those nobody here sees, because whatever the
// cache holds there (not a number, perhaps) times zero must be zero.
template <int Dims>
__device__ void load_positions(const TilesCall& call, const Queries& queries, const TileRoom<Dims>& room,
                               int stage, int first, int kv_head) {
  const int visible = call.map.first_visible(queries.first_position);
  for (int i = static_cast<int>(threadIdx.x); i < tile * room.chunks; i += threads) {
    const int row = i / room.chunks, chunk = i % room.chunks, position = first + row;
    const bool wanted = position >= visible && position <= queries.last_position && chunk * 8 < call.head_dim;
    std::int64_t source = 0;
    if (wanted) {
      source =
          (call.map.row(queries.sequence, position) * call.kv_heads + kv_head) * call.head_dim + chunk * 8;
    }
    copy_later(room.keys(stage) + room.at(row, chunk), call.keys + source * 2, wanted);
    copy_later(room.values(stage) + room.at(row, chunk), call.values + source * 2, wanted);
  }
}

// A lane's part of 16 queries: rows g and g + 8 as in mma.cuh.
template <int Dims>
struct Running {
  float values[Dims / 8][4];
  float top[2], sum[2];
  int own[2];  // positions of the two queries; -1 where there is none
};

using Scores = float[tile / 8][4];

template <int Dims>
__device__ void score(Scores& scores, const TileRoom<Dims>& room, int stage, int warp, int lane) {
#pragma unroll
  for (int k = 0; k < Dims / 16; ++k) {
    std::uint32_t q[4];
    load_matrices(q, room.queries() + room.at(warp * 16 + lane % 16, 2 * k + lane / 16));
#pragma unroll
    for (int j = 0; j < tile / 16; ++j) {
      std::uint32_t b[4];
      load_matrices(b, room.keys(stage) + room.at(16 * j + lane % 8 + lane / 16 * 8, 2 * k + lane / 8 % 2));
      multiply_add(scores[2 * j], q[0], q[1], q[2], q[3], b[0], b[1]);
      multiply_add(scores[2 * j + 1], q[0], q[1], q[2], q[3], b[2], b[3]);
    }
  }
}

// Scores to weights, in place, and what was summed before to the new largest score.
template <int Dims>
__device__ void weigh(Scores& scores, Running<Dims>& running, const TilesCall& call, int first, int lane) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int own = running.own[half], oldest = own < 0 ? 0 : call.map.first_visible(own);
    float top = running.top[half];
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
    const float base = top == -INFINITY ? 0.0f : top;  // nothing seen yet
    const float shrink = __expf(running.top[half] - base);
    running.top[half] = top;
    running.sum[half] *= shrink;
#pragma unroll
    for (int j = 0; j < tile / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float& s = scores[j][2 * half + i];
        s = __expf(s - base);
        running.sum[half] += s;
      }
    }
#pragma unroll
    for (int n = 0; n < Dims / 8; ++n) {
      running.values[n][2 * half] *= shrink;
      running.values[n][2 * half + 1] *= shrink;
    }
  }
}

template <int Dims>
__device__ void add_values(Running<Dims>& running, const Scores& weights, const TileRoom<Dims>& room,
                           int stage, int lane) {
#pragma unroll
  for (int k = 0; k < tile / 16; ++k) {
    const std::uint32_t a0 = packed(weights[2 * k][0], weights[2 * k][1]);
    const std::uint32_t a1 = packed(weights[2 * k][2], weights[2 * k][3]);
    const std::uint32_t a2 = packed(weights[2 * k + 1][0], weights[2 * k + 1][1]);
    const std::uint32_t a3 = packed(weights[2 * k + 1][2], weights[2 * k + 1][3]);
#pragma unroll
    for (int n = 0; n < Dims / 16; ++n) {
      std::uint32_t b[4];
      load_matrices_transposed(b, room.values(stage) + room.at(16 * k + lane % 16, 2 * n + lane / 16));
      multiply_add(running.values[2 * n], a0, a1, a2, a3, b[0], b[1]);
      multiply_add(running.values[2 * n + 1], a0, a1, a2, a3, b[2], b[3]);
    }
  }
}

template <int Dims>
__device__ void write_out(const TilesCall& call, const Queries& queries, const Running<Dims>& running,
                          int head, int warp, int lane) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = running.sum[half];
    sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
    sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
    const int row = warp * 16 + lane / 4 + 8 * half;
    if (row >= queries.count) continue;
    float factor = 1.0f / sum;
    if (call.sinks != nullptr) {
      const float sink = call.sinks[head], top = fmaxf(running.top[half], sink);
      const float shrink = __expf(running.top[half] - top);
      factor = shrink / (sum * shrink + __expf(sink - top));
    }
    const std::int64_t to = (std::int64_t{queries.first + row} * call.heads + head) * call.head_dim;
#pragma unroll
    for (int n = 0; n < Dims / 8; ++n) {
      const int d = 8 * n + 2 * (lane % 4);
      if (d >= call.head_dim) continue;
      *reinterpret_cast<std::uint32_t*>(call.out + (to + d) * 2) =
          packed(running.values[n][2 * half] * factor, running.values[n][2 * half + 1] * factor);
    }
  }
}

template <int Dims>
__global__ void __launch_bounds__(threads) attend_tiles_kernel(const __grid_constant__ TilesCall call) {
  extern __shared__ __align__(128) std::byte shared[];
  const TileRoom<Dims> room = {shared};
  wait_for_previous();
  let_next_start();
  const Queries queries = queries_of(call, static_cast<int>(blockIdx.x), tile);
  if (queries.sequence < 0) return;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int head = static_cast<int>(blockIdx.y), kv_head = call.kv_head_of(head);
  const int begin = call.map.first_visible(queries.first_position) / tile * tile;
  Running<Dims> running = {};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = warp * 16 + lane / 4 + 8 * half;
    running.top[half] = -INFINITY;
    running.own[half] = row < queries.count ? call.map.positions[queries.first + row] : -1;
  }
  load_queries(call, queries, room, head);
  load_positions(call, queries, room, 0, begin, kv_head);
  close_copies();
  int stage = 0;
  for (int first = begin; first <= queries.last_position; first += tile, stage ^= 1) {
    if (first + tile <= queries.last_position) {
      load_positions(call, queries, room, stage ^ 1, first + tile, kv_head);
    }
    close_copies();
    wait_for_copies<1>();
    __syncthreads();
    Scores scores = {};
    score(scores, room, stage, warp, lane);
    weigh(scores, running, call, first, lane);
    add_values(running, scores, room, stage, lane);
    __syncthreads();  // the stage is free for the copies of the next round
  }
  write_out(call, queries, running, head, warp, lane);
}

template <int Dims>
void start(const Queue& queue, const TilesCall& call, unsigned tiles) {
  constexpr std::size_t bytes = TileRoom<Dims>::bytes;
  check(cudaFuncSetAttribute(attend_tiles_kernel<Dims>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bytes)));
  launch(queue, {.grid = dim3(tiles, static_cast<unsigned>(call.heads)), .threads = threads, .shared = bytes},
         attend_tiles_kernel<Dims>, call);
}

}  // namespace

bool takes_tiles(const AttentionSpec& spec) {
  return spec.head_dim % 8 == 0 && spec.head_dim <= 128;
}

void attend_tiles(const Queue& queue, Matrix out, Matrix qkv, const AttentionCall& call) {
  const AttentionSpec& spec = call.spec;
  TilesCall what = {.map = cache_map(call),
                    .qkv = elements_of(qkv),
                    .keys = call.cache.keys.data,
                    .values = call.cache.values.data,
                    .out = out.data,
                    .sinks = spec.sinks ? floats_of(call.weights.sinks) : nullptr,
                    .heads = spec.heads,
                    .kv_heads = spec.kv_heads,
                    .head_dim = spec.head_dim,
                    .qkv_cols = qkv.cols,
                    .scale = spec.scale,
                    .min_rows = 1,
                    .max_rows = std::numeric_limits<int>::max()};
  const int sequences = call.step.context_len.rows;
  auto tiles = static_cast<unsigned>(out.rows / tile + sequences);
  if (queue.warp_groups) {
    if (sequences > 1) what.min_rows = few_rows + 1;
    attend_hopper(queue, what, out.rows);
    if (sequences == 1) return;
    what.min_rows = 1;
    what.max_rows = few_rows;
    tiles = static_cast<unsigned>(sequences);
  }
  if (spec.head_dim <= 64) return start<64>(queue, what, tiles);
  start<128>(queue, what, tiles);
}

}  // namespace inferno::cuda
