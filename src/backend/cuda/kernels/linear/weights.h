// Weights in device memory: their layouts, and the kernels that pack and decode them.
// Launchers queue work and return; none allocates or waits. Shapes as in backend.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "backend/backend.h"
#include "backend/cuda/queue.h"

namespace inferno::cuda {

// How a weight's rows lie in device memory: Weight::layout.
enum class Layout : std::uint8_t {
  stored,  // the file's blocks, one after another
  split,   // codes, then scales of each row: Q6_K
  tiled,   // eight rows together, see device/tiles.cuh
};
Layout fast_layout(WeightFormat format);  // what the kernels for bf16 activations read

struct WeightView {
  const std::byte* data = nullptr;
  WeightFormat format = WeightFormat::f32;
  Layout layout = Layout::stored;
  std::int32_t count = 1, rows = 0, cols = 0;
  std::int64_t row_bytes = 0;      // 0 in tiles
  std::int64_t tile_bytes = 0;     // of eight rows; 0 unless in tiles
  std::int32_t rows_between = 0;   // from one of `count` matrices to the next: in tiles, rows rounded up
  std::int64_t bytes_between = 0;  // the same in bytes

  // Where row `first` of the first matrix begins; in tiles only of multiples of eight.
  const std::byte* from_row(std::int64_t first) const {
    return data + (layout == Layout::tiled ? first / 8 * tile_bytes : first * row_bytes);
  }
  bool can_begin_at(std::int32_t row) const { return layout != Layout::tiled || row % 8 == 0; }
};
WeightView view(const Weight& weight);
// Whether one product may take both as its parts.
inline bool same_kind(const WeightView& a, const WeightView& b) {
  return a.format == b.format && a.layout == b.layout && a.cols == b.cols;
}
inline const float* bias_of(const Linear& weights) {
  return reinterpret_cast<const float*>(weights.bias.data);
}
// What no result of a gated activation exceeds; infinity where there is no limit.
inline float largest_activated(const ActivationSpec& activation) {
  const bool limited = activation.kind == Activation::swiglu_clamped;
  return limited ? activation.limit * (activation.limit + 1.0f) : std::numeric_limits<float>::infinity();
}

// Rows as a file has them; decoder_row() says where each goes.
struct RowRange {
  std::int64_t first = 0, count = 0;
  std::int32_t alternating = 0;
};
// From the file's blocks to Layout::split or tiled, where only what is missing in a tile is not written. `to`
// is where the weight begins, `from` the first row of the range. `*too_large` becomes 1 where an MXFP4 scale
// does not fit.
void pack_rows(const Queue& queue, std::byte* to, const std::byte* from, const WeightView& shape,
               const RowRange& rows, std::int32_t* too_large);
// The same for rows that stay as they are.
void place_rows(const Queue& queue, std::byte* to, const std::byte* from, std::int64_t row_bytes,
                const RowRange& rows);

// Decoded to bf16 in tiles: `tiles` of them from number `first` on, those of one matrix behind those of
// another. With `counts`, matrices (experts) of which nobody asked are left out; the first tile is then the
// first of a matrix, counts[0] its own.
struct TileRange {
  std::int64_t first = 0, count = 0;
};
void expand(const Queue& queue, std::byte* out, const WeightView& weight, const TileRange& tiles,
            const std::int32_t* counts);

}  // namespace inferno::cuda
