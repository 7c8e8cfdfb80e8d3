// What a stream kernel is told, and how it divides its shared memory.
#pragma once

#include "backend/cuda/device/bulk_copy.cuh"
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/tiles.cuh"
#include "backend/cuda/kernels/stream.h"

namespace inferno::cuda {

enum class StreamMode { plain, gated, add };

// Four teams of warps multiply, each another stage of the ring; one more warp fills it.
constexpr int stream_teams = 4, stream_members = 4;
constexpr int stream_warps = stream_teams * stream_members;
constexpr int stream_threads = 32 * stream_warps;
constexpr int stream_most_stages = 16;
constexpr int stream_router_rows = 128;  // of a block whose results a router reads

struct StreamPart {
  const std::byte* data = nullptr;
  int rows = 0, column = 0, first_tile = 0;
};

// How a tile is cut: into `parts` of neighbouring chunks, each a stage of the ring that comes in one copy. A
// team's members take `each` chunks of it.
struct StreamShape {
  int chunks = 0, chunk_bytes = 0;
  int parts = 1, part_chunks = 0, each = 1;
  int stages = 0, ahead = 1;  // ahead: stages that may be on their way at once; stages: a multiple of teams
  int batch = 1;              // tiles whose sums are kept at once
  int slots = 1;              // sums of a row: one for each expert, part and member of a team
  __host__ __device__ int stage_bytes() const { return part_chunks * chunk_bytes; }
  __device__ int chunks_of(int part) const { return min(part_chunks, chunks - part * part_chunks); }
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
  const float* shares = nullptr;          // of the chosen experts; null: their rows are not added up
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
  float *reduced, *small, *shares, *factors, *sums, *inverse;
  std::int32_t* chosen;   // twice: the warp that copies knows them earlier
  std::byte *in, *zeros;  // zeros: 32 bytes of them
  std::byte* ring;

  static constexpr int small_floats = stream_most_experts + stream_router_rows + 64;
  static constexpr int batch_floats = 1088;
  static constexpr int behind_ring = 2048;  // bytes that codecs may read, and multiply by zero
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
    inverse = small + small_floats - 1;
    zeros = reinterpret_cast<std::byte*>(small + stream_most_experts + stream_router_rows);
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
