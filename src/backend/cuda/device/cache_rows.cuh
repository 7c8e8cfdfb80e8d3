// Block tables: the row of the paged KV cache that holds a position, and the sequence of a batch row.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backend/backend.h"
#include "backend/cuda/device/elements.cuh"

namespace inferno::cuda {

struct CacheMap {
  const std::int32_t *block_table, *query_start, *positions;
  int table_cols, block_size, sequences, window;

  // Entries of blocks that slid out of the window are garbage: only visible positions are valid arguments.
  __device__ std::int64_t row(int sequence, int position) const {
    const std::int64_t block = block_table[std::int64_t{sequence} * table_cols + position / block_size];
    return block * block_size + position % block_size;
  }

  // The last sequence that begins at or before the row; empty sequences are skipped.
  __device__ int sequence_of(int row) const {
    int low = 0, high = sequences - 1;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (query_start[middle] <= row) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  __device__ int first_visible(int position) const { return window > 0 ? max(0, position - window + 1) : 0; }
};

// Without the first `decodes` sequences, which have one row each. Rows keep their numbers.
inline CacheMap cache_map(const AttentionCall& call, int decodes) {
  return {.block_table =
              integers_of(call.group.block_table) + std::int64_t{decodes} * call.group.block_table.cols,
          .query_start = integers_of(call.step.query_start) + decodes,
          .positions = integers_of(call.step.positions),
          .table_cols = call.group.block_table.cols,
          .block_size = call.step.block_size,
          .sequences = call.step.context_len.rows - decodes,
          .window = call.spec.window};
}

}  // namespace inferno::cuda
