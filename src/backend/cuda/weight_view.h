// A weight in device memory as kernels see it: its address, layout and strides. No CUDA is needed to describe
// one, so the choice of a kernel is plain C++.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/dispatch/formats.h"

namespace inferno::cuda {

struct WeightView {
  const std::byte* data = nullptr;
  WeightFormat format = WeightFormat::f32;
  Layout layout = Layout::stored;
  std::int32_t count = 1, rows = 0, cols = 0;
  std::int64_t row_bytes = 0;      // 0 in tiles
  std::int64_t tile_bytes = 0;     // of eight rows; 0 unless in tiles
  std::int32_t rows_between = 0;   // from one of `count` matrices to the next: in tiles, rows rounded up
  std::int64_t bytes_between = 0;  // the same in bytes
  // Weight::column_order, in device memory and here; null if there is none.
  const std::int32_t* column_order = nullptr;
  const std::vector<std::int32_t>* columns = nullptr;

  // The address of row `first` of the first matrix; in tiles, of multiples of eight only.
  const std::byte* from_row(std::int64_t first) const {
    return data + (layout == Layout::tiled ? first / 8 * tile_bytes : first * row_bytes);
  }
  bool can_begin_at(std::int32_t row) const { return layout != Layout::tiled || row % 8 == 0; }
};

WeightView view(const Weight& weight);
// Where the order of a weight's columns begins, in bytes after its first row.
std::int64_t column_order_offset(const WeightView& weight);
std::vector<WeightView> views(const Linear& weights);
// The view of a weight that is not in memory; its layout is the fastest for its format.
WeightView view_of_shape(const WeightShape& shape);
// The weight as expand() writes it (bf16 in tiles, columns in the order of the input), except that `data`
// still points to the weight itself.
WeightView decoded_view(const WeightView& weight);

inline bool same_order(const WeightView& a, const WeightView& b) {
  if (a.columns == nullptr || b.columns == nullptr) return a.columns == b.columns;
  return *a.columns == *b.columns;
}
// Whether one product may take both as its parts.
inline bool same_kind(const WeightView& a, const WeightView& b) {
  return a.format == b.format && a.layout == b.layout && a.cols == b.cols && same_order(a, b);
}
// True if gemm() can read the weight without decoding it first.
inline bool is_decoded(const WeightView& weight) {
  return weight.format == WeightFormat::bf16 && weight.layout == Layout::tiled && weight.columns == nullptr;
}
inline const float* bias_of(const Linear& weights) {
  return reinterpret_cast<const float*>(weights.bias.data);
}
// What no result of a gated activation exceeds; infinity if there is no limit.
inline float largest_activated(const ActivationSpec& activation) {
  const bool limited = activation.kind == Activation::swiglu_clamped;
  return limited ? activation.limit * (activation.limit + 1.0f) : std::numeric_limits<float>::infinity();
}

}  // namespace inferno::cuda
