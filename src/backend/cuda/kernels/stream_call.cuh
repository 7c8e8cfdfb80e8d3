// What a stream kernel is told, and how it divides its shared memory.
#pragma once

#include "backend/cuda/device/bulk_copy.cuh"
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/tiles.cuh"
#include "backend/cuda/kernels/stream.h"

namespace inferno::cuda {

enum class StreamMode { plain, gated, add };

constexpr int stream_warps = 16;  // that multiply; one more fills the ring
constexpr int stream_threads = 32 * stream_warps;
constexpr int stream_most_stages = 16;
constexpr int stream_batch = 8;  // pairs of tiles whose sums are kept at once
constexpr int stream_batch_rows = 16 * stream_batch;

struct StreamPart {
  const std::byte* data = nullptr;
  int rows = 0, column = 0, first_tile = 0;
};

// How a pair of tiles is cut: into panels of columns, one after another. Of a panel every warp has `each`
// neighbouring chunks of both tiles; a stage of the ring holds those of `warps` neighbouring warps, `parts`
// stages hold the panel.
struct StreamShape {
  int chunks = 0, chunk_bytes = 0;
  int panels = 1, panel_chunks = 0;
  int each = 1, warps = 1, parts = 1;
  int stages = 0, ahead = 1;  // ahead: stages that may be on their way at once
  __host__ __device__ int half_bytes() const { return warps * each * chunk_bytes; }
  __host__ __device__ int stage_bytes() const { return 2 * half_bytes(); }
  // Chunks of a panel from `first` on.
  __device__ int chunks_from(int panel, int first, int most) const {
    return max(0, min(most, min(panel_chunks, chunks - panel * panel_chunks) - first));
  }
};

struct StreamCall {
  StreamPart parts[gemv_most_parts];
  int part_count = 1;
  std::int64_t tile_bytes = 0, expert_bytes = 0;
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
  std::int32_t* undecided = nullptr;  // [stream_most_active]
  Elements router;                    // [experts, width]
  std::int64_t router_tile = 0;       // bytes of its tiles; 0: rows lie one after another
  int router_experts = 0;
  float* router_logits = nullptr;
};

// Shared memory, front to back. Inputs take two bytes each; `factors` and `sums` belong to blocks of 32.
// Two batches' sums take turns in `reduced`.
struct StreamRoom {
  Barrier *full, *empty;
  float *reduced, *small, *shares, *factors, *sums;
  std::int32_t* chosen;
  std::byte* in;
  std::byte* ring;

  static constexpr int small_floats = stream_most_experts + stream_batch_rows + 64;
  static constexpr int batch_floats = stream_batch_rows * (stream_warps + 1);
  static constexpr int reduced_floats = 2 * batch_floats;
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
    in = reinterpret_cast<std::byte*>(sums + inputs / 32);
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
  out.data = part.data + tile * call.tile_bytes;
  if (mode == StreamMode::gated && call.expert_tiles > 0) {
    out.data += room.chosen[out.choice] * call.expert_bytes;
  }
  return out;
}

__device__ inline void sync_multipliers() {
  asm volatile("bar.sync 1, %0;" ::"n"(stream_threads) : "memory");
}

}  // namespace inferno::cuda
