// The parts of gemm_hopper.cu: tile scheduler, and the ring between the producer warp group and the two
// consumer warp groups.
#pragma once

#include "backend/cuda/device/activation.cuh"
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/tiles.cuh"
#include "backend/cuda/device/tma.cuh"
#include "backend/cuda/device/wgmma.cuh"
#include "backend/cuda/kernels/linear/linear.h"

namespace inferno::cuda::hopper {

constexpr int tile_mn = gemm_rows, tile_k = 64;  // tokens and weight rows of a tile; columns of a stage
constexpr int group_threads = 128, threads = 3 * group_threads;
constexpr int chunk_bytes = tiles::chunk_of(WeightFormat::bf16).bytes;
constexpr int operand_bytes = tile_mn * tile_k * 2;
constexpr int stages = 6, stage_bytes = 2 * operand_bytes;
constexpr int shared_bytes = stages * stage_bytes + (2 * stages + 2) * static_cast<int>(sizeof(Mbarrier));
constexpr int band = 8;  // token tiles that share the weights in L2
// 16-byte units of gathered tokens per producer thread.
constexpr int copies = operand_bytes / 16 / group_threads;
static_assert(tile_mn == 128 && tiles::chunk_of(WeightFormat::bf16).cols == tile_k);

// The weight rows of a call: one matrix or each expert's; gate rows and up rows of the same elements; or
// several matrices whose output columns follow each other.
enum class RowKind { plain, gated, parts };

struct GemmPart {
  int rows, column;
  int first_tile;  // row tiles before this part
};

struct GemmArguments {
  // [groups of eight rows, chunks, 1024 bytes]: all rows, gate rows and up rows, or each part
  CUtensorMap weight_maps[gemv_max_parts];
  CUtensorMap token_map;  // [tokens, columns]; unused if tokens are gathered
  const std::byte* in;
  Elements out;
  const float* bias;
  std::int64_t bias_stride;
  int groups;  // groups of eight rows from one expert to the next
  Gate gate;
  int tokens, rows, cols, column, out_cols;
  int row_tiles;
  GemmPart parts[gemv_max_parts];  // RowKind::parts only; unused entries start past the last tile
  const std::int32_t *tile_expert, *tile_first, *counts, *starts, *gather;
  int tiles, first_expert, experts;
};

struct Ring {
  std::byte* smem;
  __device__ std::byte* tokens(int stage) const { return smem + stage * stage_bytes; }
  __device__ std::byte* weights(int stage) const { return tokens(stage) + operand_bytes; }
  __device__ Mbarrier* full(int stage) const {
    return reinterpret_cast<Mbarrier*>(smem + stages * stage_bytes) + stage;
  }
  __device__ Mbarrier* empty(int stage) const { return full(stages + stage); }
  __device__ Mbarrier* turn(int group) const { return full(2 * stages + group); }
};

// An output tile: rows [first_token, first_token + tokens), weight rows from first_row on, of one part.
struct Tile {
  int first_token, tokens, first_row, expert, part;
};

// Order of the tiles: token tiles before weight rows, in bands.
template <RowKind kind>
struct TileScheduler {
  static constexpr int row_step = kind == RowKind::gated ? tile_mn / 2 : tile_mn;
  int first_tile, token_tiles, row_tiles;

  // Called by all threads together: the tiles of this call's experts are contiguous.
  __device__ explicit TileScheduler(const GemmArguments& call)
      : first_tile(0), token_tiles((call.tokens + tile_mn - 1) / tile_mn), row_tiles(call.row_tiles) {
    if (call.tile_expert == nullptr) return;
    token_tiles = 0;
    for (int first = 0; first < call.tiles; first += threads) {
      const int index = first + static_cast<int>(threadIdx.x);
      const int expert = index < call.tiles ? call.tile_expert[index] : -1;
      first_tile += __syncthreads_count(expert >= 0 && expert < call.first_expert);
      token_tiles +=
          __syncthreads_count(expert >= call.first_expert && expert < call.first_expert + call.experts);
    }
  }

  __device__ static int part_of(const GemmArguments& call, int row_tile) {
    int part = 0;
    if constexpr (kind == RowKind::parts) {
#pragma unroll
      for (int i = 1; i < gemv_max_parts; ++i) part += row_tile >= call.parts[i].first_tile ? 1 : 0;
    }
    return part;
  }
  __device__ int total() const { return token_tiles * row_tiles; }
  __device__ Tile tile(const GemmArguments& call, int index) const {
    const int whole = index / (band * row_tiles), rest = index - whole * band * row_tiles;
    const int width = min(band, token_tiles - whole * band);
    const int place = first_tile + whole * band + rest % width, row_tile = rest / width;
    const int part = part_of(call, row_tile);
    const int row = (kind == RowKind::parts ? row_tile - call.parts[part].first_tile : row_tile) * row_step;
    if (call.tile_expert == nullptr) {
      return {place * tile_mn, min(tile_mn, call.tokens - place * tile_mn), row, 0, part};
    }
    const int expert = call.tile_expert[place], first = call.tile_first[place];
    return {first, min(tile_mn, call.starts[expert] + call.counts[expert] - first), row, expert, part};
  }
};

// The producer's side of the ring. One thread issues all copies except those of gathered tokens.
template <bool Gathers, RowKind kind>
class Producer {
 public:
  // Arrivals at a full barrier, besides the copied bytes.
  static constexpr int arrivals = Gathers ? group_threads + 1 : 1;
  __device__ Producer(const GemmArguments& call, const Ring& ring) : call_(call), ring_(ring) {}

  __device__ void fill(const Tile& tile) {
    if constexpr (Gathers) {
      fill_gathered(tile);
    } else if (threadIdx.x == 0) {
      for (int k = 0; k < call_.cols; k += tile_k) {
        mbarrier_wait(ring_.empty(next_.stage), next_.parity);
        copy_weights(tile, k);
        tensor_copy(ring_.tokens(next_.stage), call_.token_map, k, tile.first_token, ring_.full(next_.stage));
        next_.advance(stages);
      }
    }
  }

 private:
  __device__ void fill_gathered(const Tile& tile) {
    const int thread = static_cast<int>(threadIdx.x);
    const int unit = thread % 8, first = thread / 8;  // unit of 16 bytes; first row
    const std::byte* from[copies];
#pragma unroll
    for (int i = 0; i < copies; ++i) {  // rows past the last are copies of it, never written
      const int row = min(first + i * (group_threads / 8), tile.tokens - 1);
      from[i] = call_.in + (std::int64_t{call_.gather[tile.first_token + row]} * call_.cols + unit * 8) * 2;
    }
    const int to = first * 128 + (unit ^ (first % 8)) * 16;
    for (int k = 0; k < call_.cols; k += tile_k) {
      mbarrier_wait(ring_.empty(next_.stage), next_.parity);
      if (thread == 0) copy_weights(tile, k);
      const bool inside = k + unit * 8 < call_.cols;
      std::byte* target = ring_.tokens(next_.stage) + to;
#pragma unroll
      for (int i = 0; i < copies; ++i) {
        cp_async(target + i * (group_threads / 8 * 128), inside ? from[i] + k * 2 : call_.in, inside);
      }
      mbarrier_arrive_after_cp_async(ring_.full(next_.stage));
      next_.advance(stages);
    }
  }
  __device__ void copy_weights(const Tile& tile, int k) {
    Mbarrier* full = ring_.full(next_.stage);
    mbarrier_arrive_expect_tx(full, Gathers ? operand_bytes : stage_bytes);
    const int group = (tile.expert - call_.first_expert) * call_.groups + tile.first_row / tiles::tile_rows;
    std::byte* to = ring_.weights(next_.stage);
    tensor_copy(to, call_.weight_maps[kind == RowKind::parts ? tile.part : 0], 0, k / tile_k, group, full);
    if constexpr (kind == RowKind::gated) {
      tensor_copy(to + operand_bytes / 2, call_.weight_maps[1], 0, k / tile_k, group, full);
    }
  }

  const GemmArguments& call_;
  const Ring& ring_;
  PipelineState next_ = {0, 1};  // in the first round every stage is empty
};

using Sums = float[2][tile_mn / 2];  // 64 tokens each

// A consumer warp group's side. A group starts its tile only after the other has waited for its last stage,
// because a parity cannot distinguish the next phase from the one two rounds ago.
template <bool Gathers>
class Consumer {
 public:
  __device__ Consumer(const Ring& ring, int group)
      : ring_(ring), group_(group), turn_parity_(group == 0 ? 1 : 0) {}  // group 0 starts

  // Halves: 2 if the tile has more than 64 tokens.
  template <int Halves>
  __device__ void multiply(Sums& sums, int steps) {
    mbarrier_wait(ring_.turn(group_), turn_parity_);
    turn_parity_ ^= 1;
    start<Halves>(sums, /*adds=*/false);
    for (int step = 1; step < steps; ++step) {
      const int before = place_.stage;
      place_.advance(stages);
      start<Halves>(sums, /*adds=*/true);
      wgmma_wait_group<1>();
      release(before);
    }
    mbarrier_arrive_warp(ring_.turn(1 - group_), static_cast<int>(threadIdx.x) % 32);
    wgmma_wait_group<0>();
#pragma unroll
    for (int half = 0; half < Halves; ++half) wgmma_fence_operand(sums[half]);
    release(place_.stage);
    place_.advance(stages);
  }
  // Skips the other group's tile.
  __device__ void skip(int steps) {
    const int end = place_.stage + steps;
    place_.stage = end % stages;
    place_.parity ^= end / stages % 2;
  }

 private:
  template <int Halves>
  __device__ void start(Sums& sums, bool adds) {
    mbarrier_wait(ring_.full(place_.stage), place_.parity);
    if constexpr (Gathers) fence_proxy_async();  // rows were written by cp.async
    const std::uint64_t tokens = wgmma_descriptor(ring_.tokens(place_.stage), Swizzle::bytes_128, 1024);
    const std::uint64_t weights =
        wgmma_descriptor(ring_.weights(place_.stage), Swizzle::bytes_64, chunk_bytes);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < tile_k / 16; ++k) {
#pragma unroll
      for (int half = 0; half < Halves; ++half) {
        wgmma(sums[half], tokens + descriptor_offset(half * (operand_bytes / 2) + 32 * k),
              weights + descriptor_offset(512 * (k / 2) + 32 * (k % 2)), adds || k > 0);
      }
    }
    wgmma_commit_group();
  }
  __device__ void release(int stage) {
    mbarrier_arrive_warp(ring_.empty(stage), static_cast<int>(threadIdx.x) % 32);
  }

  const Ring& ring_;
  int group_;
  std::uint32_t turn_parity_;
  PipelineState place_ = {};
};

}  // namespace inferno::cuda::hopper
