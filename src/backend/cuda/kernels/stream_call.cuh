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
constexpr int stream_batch = 16;  // tiles whose sums are kept at once
constexpr int stream_batch_rows = tiles::tile_rows * stream_batch;

struct StreamPart {
  const std::byte* data = nullptr;
  int rows = 0, column = 0, first_tile = 0;
};

// How a tile is cut: into panels of columns, one after another. Of a panel every warp has `each` neighbouring
// chunks; a stage of the ring holds those of `warps` neighbouring warps and comes in one copy, `parts` stages
// hold the panel.
struct StreamShape {
  int chunks = 0, chunk_bytes = 0;
  int panels = 1, panel_chunks = 0;
  int each = 1, warps = 1, parts = 1;
  int stages = 0, ahead = 1;  // ahead: stages that may be on their way at once
  __host__ __device__ int stage_bytes() const { return warps * each * chunk_bytes; }
  // Chunks of a panel from `first` on.
  __device__ int chunks_from(int panel, int first, int most) const {
    return max(0, min(most, min(panel_chunks, chunks - panel * panel_chunks) - first));
  }
};

// In the order of use: what the first copies need comes first.
struct StreamCall {
  StreamShape shape;
  int tiles = 0;  // of eight rows; of gated products: of the gate, each with one of up
  std::int64_t tile_bytes = 0, expert_bytes = 0;
  StreamPart parts[gemv_most_parts];
  int part_count = 1;
  int active = 1, expert_tiles = 0;
  int vectors = 1;                        // one input for each chosen expert when there are several
  const std::int32_t* experts = nullptr;  // chosen by a kernel before; null also when this one chooses
  const float* shares = nullptr;
  const std::byte* in = nullptr;
  int cols = 0;
  bool in_is_wide = false;
  DelayedNorm norm;
  Routing routing;  // parts.logits null: nothing is chosen here
  const float* bias = nullptr;
  std::int64_t bias_stride = 0;
  Elements out;
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
  std::int32_t* chosen;  // twice: the warp that copies knows them earlier
  std::byte* in;
  std::byte* ring;

  static constexpr int small_floats = stream_most_experts + stream_batch_rows + 64;
  static constexpr int batch_floats = stream_batch_rows * (stream_warps + 1);
  static constexpr int reduced_floats = 2 * batch_floats;
  __host__ __device__ static int fixed_bytes(int inputs) {
    const int bytes = 2 * stream_most_stages * 8 +
                      4 * (reduced_floats + small_floats + 3 * stream_most_active + inputs / 16) + 2 * inputs;
    return (bytes + 127) / 128 * 128;
  }
  __device__ StreamRoom(std::byte* start, int inputs) {
    full = reinterpret_cast<Barrier*>(start);
    empty = full + stream_most_stages;
    reduced = reinterpret_cast<float*>(empty + stream_most_stages);
    small = reduced + reduced_floats;
    shares = small + small_floats;
    chosen = reinterpret_cast<std::int32_t*>(shares + stream_most_active);
    factors = reinterpret_cast<float*>(chosen + 2 * stream_most_active);
    sums = factors + inputs / 32;
    in = reinterpret_cast<std::byte*>(sums + inputs / 32);
    ring = start + fixed_bytes(inputs);
  }
};

// The tiles of this block. Of gated products `items` alternates between a tile of the gate and one of up.
struct StreamShare {
  int first, count, items;
};
template <StreamMode mode>
__device__ StreamShare share_of(const StreamCall& call) {
  const auto own = static_cast<unsigned>(blockIdx.x), all = static_cast<unsigned>(gridDim.x);
  const unsigned each = static_cast<unsigned>(call.tiles) / all,
                 rest = static_cast<unsigned>(call.tiles) % all;
  const int count = static_cast<int>(each + (own < rest ? 1u : 0u));
  const int first = static_cast<int>(own * each + min(own, rest));
  return {first, count, mode == StreamMode::gated ? 2 * count : count};
}

// Eight rows of a weight; `rows` of them exist.
struct StreamTile {
  const std::byte* data = nullptr;
  int rows = 0, part = 0, row = 0, choice = 0;
};
template <StreamMode mode>
__device__ StreamTile tile_of(const StreamCall& call, const StreamRoom& room, const StreamShare& share,
                              int item) {
  StreamTile out;
  int tile = share.first;
  if constexpr (mode == StreamMode::gated) {
    tile += item / 2;
    if (call.expert_tiles > 0) {
      out.choice = tile / call.expert_tiles;
      tile -= out.choice * call.expert_tiles;
    }
    out.part = item % 2;
  } else {
    tile += item;
    while (out.part + 1 < call.part_count && tile >= call.parts[out.part + 1].first_tile) ++out.part;
    tile -= call.parts[out.part].first_tile;
  }
  const StreamPart& part = call.parts[out.part];
  out.row = tiles::tile_rows * tile;
  out.rows = min(tiles::tile_rows, part.rows - out.row);
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
