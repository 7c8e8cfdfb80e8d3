// How kernels cut a weight's columns and their shared memory. The choice of a kernel asks whether a shape
// fits the device, and the launch uses the same shape, so both are computed here, without CUDA.
#pragma once

#include <optional>

#include "backend/cuda/dispatch/device_traits.h"
#include "backend/cuda/weight_view.h"

namespace inferno::cuda {

// -- stream: one token

// Consumer warps; one more is the producer. Sixteen warps of up to 96 registers leave an SM room for a block
// of attention_decode.cu, four warps of 128.
constexpr int stream_warps = 15;
constexpr int stream_threads = 32 * stream_warps;
constexpr int stream_max_stages = 16;
constexpr int stream_max_blocks = 1024;   // whose sums of squares SingleToken has memory for
constexpr int stream_router_rows = 128;   // of one block whose results a router reads
constexpr int stream_router_columns = 8;  // of the router that one thread keeps
constexpr int stream_batch = 6;           // pairs of tiles whose sums are kept at once
constexpr int stream_max_active = 32, stream_max_experts = 128;

// A stage of the ring holds the same columns of a pair of tiles: all columns, or one of `parts`.
struct StreamShape {
  int chunks = 0, chunk_bytes = 0;
  int parts = 1, part_chunks = 0;
  int each = 1;  // chunks of a part that a warp multiplies
  int used = 1;  // warps that have any
  int stages = 0;
  // Stages that may be in flight at once: while the previous kernel still runs, and afterwards.
  int early_in_flight = 1, max_in_flight = 1;
  constexpr int part_bytes() const { return part_chunks * chunk_bytes; }
  constexpr int stage_bytes() const { return 2 * part_bytes(); }
  constexpr int chunks_of(int part) const {
    const int rest = chunks - part * part_chunks;
    return part_chunks < rest ? part_chunks : rest;
  }
};

constexpr int stream_warp_floats = 2 * tiles::tile_rows * stream_batch + 4;  // 4: warps write to other banks
constexpr int stream_batch_floats = stream_warps * stream_warp_floats;
constexpr int stream_small_floats = stream_warps + 1 + stream_router_rows + 16;
// Bytes that codecs may read after the input and the ring, and multiply by zero.
constexpr int stream_input_padding = 128, stream_ring_padding = 2048;
// Bytes of shared memory before the ring, for an input of `inputs` elements.
constexpr int stream_fixed_bytes(int inputs) {
  const int floats = 2 * stream_batch_floats + stream_small_floats + 2 * stream_max_active + inputs / 16;
  return ((2 * stream_max_stages + 2) * 8 + 4 * floats + 2 * inputs + stream_input_padding + 127) / 128 * 128;
}

// nullopt: the weight's columns are not whole chunks, or the ring does not fit.
std::optional<StreamShape> stream_shape(const DeviceTraits& device, const WeightView& weight, int vectors);
// Whether there is a stream kernel for a weight that is multiplied by `vectors` inputs.
bool can_stream(const DeviceTraits& device, const WeightView& weight, int vectors);
// The number of blocks that compute a product of `rows` rows, each of which writes a partial sum of squares.
int stream_blocks(const DeviceTraits& device, int rows);
// Threads that share an expert of a router, as a power of two.
int stream_router_shift(int experts);
// Whether a stream kernel can sum the router's logits of the rows that it writes.
bool can_stream_router(const DeviceTraits& device, const WeightView& router);

// -- grouped: a few dozen tokens

// Four teams of four consumer warps; one producer warp for weights, one for tokens.
constexpr int grouped_teams = 4, grouped_members = 4;
constexpr int grouped_warps = grouped_teams * grouped_members;
constexpr int grouped_threads = 32 * (grouped_warps + 2);
constexpr int grouped_max_stages = 24;
constexpr int grouped_max_n_tiles = 3;  // a group has up to three n-tiles of eight tokens

enum class GroupedMode { gated, plain };

// Chunks of each tile of a pair that one member of a team has in a stage. A stage is about nine kilobytes, or
// one chunk for each member if that is more.
constexpr int grouped_chunks_each(tiles::Chunk chunk) {
  const int wanted = (9 << 10) / (2 * grouped_members * chunk.bytes);
  return wanted > 1 ? wanted : 1;
}
constexpr int grouped_stage_bytes(tiles::Chunk chunk) {
  return 2 * grouped_members * grouped_chunks_each(chunk) * chunk.bytes;
}

// A pair of tiles is cut into slabs of columns, whose tokens fit into shared memory; a slab into parts, each
// a stage of the ring.
struct GroupedShape {
  int chunks = 0, slabs = 1, slab_chunks = 0;
  int stages = 0, n_tiles = 1, token_stride = 0;
  constexpr int chunks_of(int slab) const {
    const int rest = chunks - slab * slab_chunks;
    return slab_chunks < rest ? slab_chunks : rest;
  }
};

constexpr int grouped_barriers = 2 * grouped_max_stages + 2 + 2 * grouped_teams;
constexpr int grouped_small_bytes = 8 * grouped_barriers + 16;
constexpr int grouped_sums_bytes(int n_tiles) {
  return grouped_teams * (grouped_members - 1) * n_tiles * 32 * 16;
}
// Bytes of shared memory before the ring.
constexpr int grouped_fixed_bytes(const GroupedShape& shape) {
  const int bytes =
      grouped_small_bytes + grouped_sums_bytes(shape.n_tiles) + 8 * shape.n_tiles * shape.token_stride;
  return (bytes + 127) / 128 * 128;
}

// stages 0: it does not fit.
GroupedShape grouped_shape(const DeviceTraits& device, const WeightView& weight, int n_tiles,
                           GroupedMode mode);
// Whether there is a grouped kernel for the weight at all.
bool has_grouped(const DeviceTraits& device, const WeightView& weight);
// N-tiles of eight tokens in a group of a product of `tokens` rows without experts: groups of up to 24
// tokens, equally large if possible. 0: no shape fits.
int grouped_dense_n_tiles(const DeviceTraits& device, const WeightView& weight, int tokens, DType out);

// -- gemv: up to 32 tokens

constexpr int gemv_max_tokens = 8;  // of one pass over the weights
constexpr int gemv_max_parts = 4;   // the same limit holds for all kernels that join parts
constexpr int gemv_max_active = 64;
constexpr int gemv_max_shared = 96 << 10;
// Bytes of one token's activations in shared memory; 64: each starts half the banks further.
constexpr int gemv_staged_bytes(int cols) {
  return 2 * cols + 64;
}

// -- gemm

constexpr int gemm_rows = 128;
constexpr int coded_rows = 256, coded_depth = 64;  // tokens of a tile, columns of a stage
constexpr int coded_shared_bytes = 222560;         // which gemm_coded.cuh adds up

// -- routing

constexpr int route_run = 8;  // columns that a lane reads at once
// Shared memory for the logits: of one token in route_rows.cu, of sixteen in route_many.cu.
constexpr int route_rows_bytes(int experts) {
  return 5 * 4 * experts;
}
constexpr int route_many_bytes(int experts) {
  return 16 * 4 * experts;
}
constexpr int route_rows_max_bytes = 46 << 10;
constexpr int route_many_max_bytes = 24 << 10;  // what the sums leave of 48 KB

}  // namespace inferno::cuda
