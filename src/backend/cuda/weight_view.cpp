#include "backend/cuda/weight_view.h"

namespace inferno::cuda {
namespace {

void set_strides(WeightView& weight) {
  weight.rows_between = weight.rows;
  if (weight.layout == Layout::tiled) {
    weight.tile_bytes = tiles::tile_bytes(weight.format, weight.cols);
    weight.rows_between = static_cast<std::int32_t>(tiles::padded_rows(weight.rows));
    weight.bytes_between = weight.rows_between / tiles::tile_rows * weight.tile_bytes;
    return;
  }
  // Q6_K's parts are also as many bytes as its blocks; split, every row begins at a multiple of 16 bytes.
  weight.row_bytes =
      static_cast<std::int64_t>(bytes_for(weight.format, static_cast<std::size_t>(weight.cols)));
  if (weight.layout == Layout::split) weight.row_bytes = (weight.row_bytes + 15) / 16 * 16;
  weight.bytes_between = weight.rows * weight.row_bytes;
}

}  // namespace

WeightView view(const Weight& weight) {
  WeightView out = {.data = weight.memory.data(),
                    .format = weight.format,
                    .layout = static_cast<Layout>(weight.layout),
                    .count = weight.count,
                    .rows = weight.rows,
                    .cols = weight.cols};
  set_strides(out);
  if (!weight.column_order.empty()) {
    out.columns = &weight.column_order;
    out.column_order = reinterpret_cast<const std::int32_t*>(out.data + column_order_offset(out));
  }
  return out;
}

std::int64_t column_order_offset(const WeightView& weight) {
  return (weight.count * weight.bytes_between + 15) / 16 * 16;
}

std::vector<WeightView> views(const Linear& weights) {
  std::vector<WeightView> out;
  out.reserve(weights.parts.size());
  for (const Weight* weight : weights.parts) out.push_back(view(*weight));
  return out;
}

WeightView view_of_shape(const WeightShape& shape) {
  WeightView out = {.format = shape.format,
                    .layout = traits_of(shape.format).layout,
                    .count = shape.count,
                    .rows = shape.rows,
                    .cols = shape.cols};
  set_strides(out);
  return out;
}

WeightView decoded_view(const WeightView& weight) {
  WeightView out = weight;
  out.format = WeightFormat::bf16;
  out.layout = Layout::tiled;
  out.row_bytes = 0;
  out.columns = nullptr;
  out.column_order = nullptr;
  set_strides(out);
  return out;
}

}  // namespace inferno::cuda
