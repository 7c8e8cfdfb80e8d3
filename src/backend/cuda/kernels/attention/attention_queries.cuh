// The queries of a step cut into tiles, for the prefill kernels.
#pragma once

#include "backend/cuda/device/cache_rows.cuh"
#include "backend/cuda/device/cached.cuh"
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/queue.h"

namespace inferno::cuda {

struct TilesCall {
  CacheMap map;
  Elements qkv;
  Cached keys, values;
  std::byte* out;
  const float* sinks;
  int heads, kv_heads, head_dim, qkv_cols;
  float scale;
  int min_rows, max_rows;  // query rows of the sequences that this kernel takes

  __device__ int kv_head_of(int head) const { return head / (heads / kv_heads); }
};

struct Queries {
  int sequence = -1, first = 0, count = 0;  // rows of the batch
  int first_position = 0, last_position = 0;
};

__device__ inline int tiles_of(const TilesCall& call, int sequence, int tile) {
  const int rows = call.map.query_start[sequence + 1] - call.map.query_start[sequence];
  return rows < call.min_rows || rows > call.max_rows ? 0 : (rows + tile - 1) / tile;
}

// Tiles are numbered sequence by sequence; indices past the last tile give sequence -1.
__device__ inline Queries queries_of(const TilesCall& call, int index, int tile) {
  Queries out;
  for (int s = 0; s < call.map.sequences; ++s) {
    const int tiles = tiles_of(call, s, tile);
    if (index >= tiles) {
      index -= tiles;
      continue;
    }
    const int start = call.map.query_start[s], rows = call.map.query_start[s + 1] - start;
    out = {.sequence = s, .first = start + index * tile, .count = min(tile, rows - index * tile)};
    out.first_position = call.map.positions[out.first];
    out.last_position = call.map.positions[out.first + out.count - 1];
    return out;
  }
  return out;
}

// Eight elements of a query, or zeros.
__device__ inline uint4 query_run(const TilesCall& call, const Queries& queries, int row, int head,
                                  int dimension) {
  if (row >= queries.count || dimension >= call.head_dim) return make_uint4(0, 0, 0, 0);
  float q[8];
  call.qkv.get_run(q, std::int64_t{queries.first + row} * call.qkv_cols + head * call.head_dim + dimension,
                   8);
  return make_uint4(pack_bf16x2(q[0], q[1]), pack_bf16x2(q[2], q[3]), pack_bf16x2(q[4], q[5]),
                    pack_bf16x2(q[6], q[7]));
}

// attention_hopper.cu: attention with wgmma. `rows`: of all sequences.
void start_hopper(const Queue& queue, const TilesCall& call, int rows);

}  // namespace inferno::cuda
