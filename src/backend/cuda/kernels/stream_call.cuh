// What a stream kernel is told, and how it divides its shared memory.
#pragma once

#include "backend/cuda/device/bulk_copy.cuh"
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/kernels/stream.h"

namespace inferno::cuda {

enum class StreamMode { plain, gated, add };

constexpr int stream_warps = 16;  // that multiply
constexpr int stream_fillers =
    4;  // warps that fill the ring, four rows of a stage each: to start copies takes time
constexpr int stream_threads = 32 * stream_warps;
constexpr int stream_most_stages = 16;
constexpr int stream_batch = 16;  // pairs of tiles whose sums are kept at once
constexpr int stream_batch_rows = 16 * stream_batch;
constexpr int stream_most_active = 32, stream_most_experts = 512;

struct StreamPart {
  const std::byte* data = nullptr;
  int rows = 0, column = 0, first_tile = 0;
};

// How rows are cut. A warp keeps its inputs for a panel of columns in registers; a stage of the ring holds a
// part of a panel. Of a row that is a piece of codes and, where scales lie behind all codes of a row, a piece
// of those.
struct StreamShape {
  int panels = 1, panel_cols = 0;
  int parts = 1, part_cols = 0;                // stages of a panel
  int block_bytes = 0, tail_bytes = 0;         // of 32 columns
  int tail_at = 0;                             // where the scales of a row begin
  int row_copy = 0;                            // bytes, when a row is copied whole
  int stride = 0, tail_stride = 0;             // of the rows of a stage; tail_stride 0: no pieces of scales
  int blocks_each = 2;                         // blocks of 32 columns that a warp takes of a stage
  int stage_bytes = 0, stages = 0, ahead = 1;  // ahead: stages that may be on their way at once
};

struct StreamCall {
  StreamPart parts[gemv_most_parts];
  int part_count = 1;
  std::int64_t row_bytes = 0, expert_bytes = 0;
  StreamShape shape;
  int tiles = 0;  // of eight rows; of gated products: pairs of gate and up
  int cols = 0;
  const std::byte* in = nullptr;
  bool in_is_wide = false;
  int vectors = 1;  // one input for each chosen expert when there are several
  DelayedNorm norm;
  const std::int32_t* experts = nullptr;  // chosen by a kernel before; null also when this one chooses
  const float* shares = nullptr;
  Routing routing;  // parts.logits null: nothing is chosen here
  int active = 1, expert_tiles = 0;
  Elements out;
  const float* bias = nullptr;
  std::int64_t bias_stride = 0;
  ActivationSpec activation;
  float* residual = nullptr;
  const float* gain = nullptr;
  float scale = 1.0f;
  float* squares = nullptr;
  Elements router;  // [experts, width]
  int router_experts = 0;
  float* router_logits = nullptr;
};

// Shared memory, front to back. Inputs are 16-bit; `factors` and `sums` belong to blocks of 32.
struct StreamRoom {
  Barrier *full, *empty;
  float *reduced, *small, *shares, *factors, *sums;
  std::int32_t* chosen;
  std::uint16_t* in;
  std::byte* ring;

  static constexpr int small_floats = stream_most_experts + stream_batch_rows + 64;
  static constexpr int reduced_floats = stream_batch_rows * (stream_warps + 1);
  __host__ __device__ static int fixed_bytes(int inputs) {
    const int bytes = 2 * stream_most_stages * 8 +
                      4 * (reduced_floats + small_floats + 2 * stream_most_active + inputs / 16) + 2 * inputs;
    return (bytes + 127) / 128 * 128;
  }
  __device__ StreamRoom(std::byte* start, int inputs) {
    full = reinterpret_cast<Barrier*>(start);
    empty = full + stream_most_stages;
    reduced = reinterpret_cast<float*>(empty + stream_most_stages);
    small = reduced + reduced_floats;
    shares = small + small_floats;
    chosen = reinterpret_cast<std::int32_t*>(shares + stream_most_active);
    factors = reinterpret_cast<float*>(chosen + stream_most_active);
    sums = factors + inputs / 32;
    in = reinterpret_cast<std::uint16_t*>(sums + inputs / 32);
    ring = start + fixed_bytes(inputs);
  }
};

// The tiles of this block, and the pairs they make.
struct StreamShare {
  int first, count, pairs;
};
template <StreamMode mode>
__device__ StreamShare share_of(const StreamCall& call) {
  const auto begin = static_cast<int>(std::int64_t{call.tiles} * blockIdx.x / gridDim.x);
  const auto end = static_cast<int>(std::int64_t{call.tiles} * (blockIdx.x + 1) / gridDim.x);
  const int count = end - begin;
  return {begin, count, mode == StreamMode::gated ? count : (count + 1) / 2};
}

// Eight rows of a weight; `rows` of them exist.
struct StreamTile {
  const std::byte* data = nullptr;
  int rows = 0, part = 0, row = 0, choice = 0;
};
template <StreamMode mode>
__device__ StreamTile tile_of(const StreamCall& call, const StreamRoom& room, const StreamShare& share,
                              int pair, int half) {
  StreamTile out;
  int tile = share.first;
  if constexpr (mode == StreamMode::gated) {
    tile += pair;
    if (call.expert_tiles > 0) {
      out.choice = tile / call.expert_tiles;
      tile -= out.choice * call.expert_tiles;
    }
    out.part = half;
  } else {
    const int at = 2 * pair + half;
    if (at >= share.count) return out;
    tile += at;
    while (out.part + 1 < call.part_count && tile >= call.parts[out.part + 1].first_tile) ++out.part;
    tile -= call.parts[out.part].first_tile;
  }
  const StreamPart& part = call.parts[out.part];
  out.row = 8 * tile;
  out.rows = min(8, part.rows - out.row);
  out.data = part.data + out.row * call.row_bytes;
  if (mode == StreamMode::gated && call.expert_tiles > 0) {
    out.data += room.chosen[out.choice] * call.expert_bytes;
  }
  return out;
}

__device__ inline void sync_multipliers() {
  asm volatile("bar.sync 1, %0;" ::"n"(stream_threads) : "memory");
}

}  // namespace inferno::cuda
