// The kernels that pack weights into their layouts and decode them.
// Launchers queue work and return; none allocates or waits. Shapes as in backend.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/queue.h"
#include "backend/cuda/weight_view.h"

namespace inferno::cuda {

// Rows in the file's order; decoder_row() gives the row of the weight.
struct RowRange {
  std::int64_t first = 0, count = 0;
  std::int32_t alternating = 0;
};
// From the file's blocks to Layout::split or tiled; the padding of tiles is not written. `to` is the start of
// the weight, `from` the first row of the range. `*too_large` becomes 1 if an MXFP4 scale does not fit.
void pack_rows(const Queue& queue, std::byte* to, const std::byte* from, const WeightView& shape,
               const RowRange& rows, std::int32_t* too_large);
// The same for rows that stay as they are.
void place_rows(const Queue& queue, std::byte* to, const std::byte* from, std::int64_t row_bytes,
                const RowRange& rows);

// Decodes tiles to bf16 in tiles; the tiles of `count` matrices follow one another. With `counts`, matrices
// (experts) that no token chose are left out; the range then starts at a matrix, and counts[0] is its own.
struct TileRange {
  std::int64_t first = 0, count = 0;
};
void expand(const Queue& queue, std::byte* out, const WeightView& weight, const TileRange& tiles,
            const std::int32_t* counts);

}  // namespace inferno::cuda
