// Arguments of a stream kernel, its shared memory and the part of the work that a block takes.
#pragma once

#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/tiles.cuh"
#include "backend/cuda/device/tma.cuh"
#include "backend/cuda/kernels/linear/stream.h"

namespace inferno::cuda {

// What happens to the sums. experts: gated, and this kernel chooses the experts. combine: add, for the
// weighted sum of the chosen experts' rows.
enum class StreamMode { plain, gated, experts, add, combine };
constexpr bool is_gated(StreamMode mode) {
  return mode == StreamMode::gated || mode == StreamMode::experts;
}
constexpr bool is_adding(StreamMode mode) {
  return mode == StreamMode::add || mode == StreamMode::combine;
}
// Whether a pair of tiles gives eight output rows, or sixteen.
constexpr bool pair_gives_eight_rows(StreamMode mode) {
  return is_gated(mode) || mode == StreamMode::combine;
}

struct StreamPart {
  const std::byte* data = nullptr;
  int rows = 0, column = 0, first_tile = 0;
};

// Ordered by first use: what the first copies need comes first.
struct StreamCall {
  StreamShape shape;
  int tiles_each = 0, tiles_remainder = 0;  // tiles of eight rows per block; gated: of the gate
  std::int64_t tile_bytes = 0, expert_bytes = 0;
  StreamPart parts[gemv_max_parts];
  int part_count = 1;
  int active = 1, expert_tiles = 0;
  int vectors = 1;                        // inputs: one for each chosen expert when combining
  const std::int32_t* experts = nullptr;  // chosen by an earlier kernel
  const float* shares = nullptr;          // routing weights of the chosen experts
  const std::byte* in = nullptr;
  int cols = 0;
  bool in_is_wide = false;
  const std::int32_t* column_order = nullptr;  // WeightView::column_order of the only matrix
  float in_factor = 0.0f;                      // if not zero, the input is f16 and must be multiplied by this
  DelayedNorm norm;
  Routing routing;
  const float* bias = nullptr;
  std::int64_t bias_stride = 0;
  Elements out;
  ActivationSpec activation;
  float* residual = nullptr;
  const float* gain = nullptr;
  float scale = 1.0f;
  float* squares = nullptr;
  std::int32_t* undecided = nullptr;  // [stream_max_active]
  Elements router;                    // [experts, width]
  std::int64_t router_tile = 0;       // bytes of a router tile; 0: rows are contiguous
  int router_experts = 0;
  int router_shift = 0;  // 2^router_shift threads share an expert's row of the router
  std::int64_t* router_sums = nullptr;
};

// Shared memory, front to back. Inputs take two bytes each; `factors` and `sums` are per block of 32. Two
// batches alternate in `reduced`.
struct StreamSmem {
  Mbarrier *full, *empty, *predecessor_done,
      *routed;  // routed: experts are chosen
  float *reduced, *squares, *scaled, *inverse, *factors, *sums;
  std::int32_t* chosen;   // two copies: the producer's, which is known earlier, is the second
  std::byte *zeros, *in;  // zeros: 32 zero bytes
  std::byte* ring;

  static constexpr int batch_rows = 2 * tiles::tile_rows * stream_batch;
  static constexpr int warp_floats = stream_warp_floats, batch_floats = stream_batch_floats;
  __device__ StreamSmem(std::byte* start, int inputs) {
    full = reinterpret_cast<Mbarrier*>(start);
    empty = full + stream_max_stages;
    predecessor_done = empty + stream_max_stages;
    routed = predecessor_done + 1;
    reduced = reinterpret_cast<float*>(routed + 1);
    zeros = reinterpret_cast<std::byte*>(reduced + 2 * batch_floats);
    inverse = reduced + 2 * batch_floats + 8;
    squares = inverse + 8;
    scaled = squares + stream_warps + 1;
    chosen = reinterpret_cast<std::int32_t*>(scaled + stream_router_rows);
    factors = reinterpret_cast<float*>(chosen + 2 * stream_max_active);
    sums = factors + inputs / 32;
    in = reinterpret_cast<std::byte*>(sums + inputs / 32);
    ring = start + stream_fixed_bytes(inputs);
  }
};

// The tiles of this block, processed in pairs. Gated: one of the gate and one of up. Combine: the same tile
// of two experts. Otherwise neighbors, the last of which may be alone.
struct StreamWork {
  int first, tiles, pairs;
};
template <StreamMode mode>
__device__ StreamWork work_of(const StreamCall& call) {
  const int own = static_cast<int>(blockIdx.x);
  const int tiles = call.tiles_each + (own < call.tiles_remainder ? 1 : 0);
  return {own * call.tiles_each + min(own, call.tiles_remainder), tiles,
          pair_gives_eight_rows(mode) ? tiles : (tiles + 1) / 2};
}

// The rows of a tile: within a part of the weight, or of a chosen expert.
struct TileIndex {
  int tile, part = 0, choice = 0;
  __device__ int row() const { return tiles::tile_rows * tile; }
};
template <StreamMode mode>
__device__ TileIndex index_of(const StreamCall& call, int tile) {
  TileIndex out = {tile};
  if constexpr (mode == StreamMode::plain) {
    while (out.part + 1 < call.part_count && tile >= call.parts[out.part + 1].first_tile) ++out.part;
    out.tile -= call.parts[out.part].first_tile;
  }
  if constexpr (mode == StreamMode::experts) {
    for (; out.tile >= call.expert_tiles; out.tile -= call.expert_tiles) ++out.choice;
  }
  return out;
}

// Named barriers of the block, besides the ring's mbarriers. The producer only arrives.
__device__ inline void sync_consumers() {
  asm volatile("bar.sync 1, %0;" ::"n"(stream_threads) : "memory");
}
// Both the full and the empty mbarriers are initialized.
__device__ inline void producer_can_start(bool waits) {
  if (waits) {
    asm volatile("bar.sync 4, 64;" ::: "memory");
  } else {
    asm volatile("bar.arrive 4, 64;" ::: "memory");
  }
}
__device__ inline void consumers_can_start(bool waits) {
  if (waits) {
    asm volatile("bar.sync 2, %0;" ::"n"(stream_threads + 32) : "memory");
  } else {
    asm volatile("bar.arrive 2, %0;" ::"n"(stream_threads + 32) : "memory");
  }
}
// Threads of the warps that write gated results.
constexpr int stream_epilogue_threads = 64;
static_assert(stream_batch * tiles::tile_rows <= stream_epilogue_threads);

// Router logits are accumulated as integers of 2^-28: the result does not depend on the order in which blocks
// add. Values that would overflow are clamped.
constexpr float route_unit = 268435456.0f, max_route_units = 36028797018963968.0f;
__device__ inline void add_to_logit(std::int64_t* sum, float value) {
  const long long units = __float2ll_rn(fminf(fmaxf(value * route_unit, -max_route_units), max_route_units));
  atomicAdd(reinterpret_cast<unsigned long long*>(sum), static_cast<unsigned long long>(units));
}

}  // namespace inferno::cuda
