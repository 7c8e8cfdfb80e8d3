#include "backend/cuda/dispatch/shapes.h"

#include <algorithm>

namespace inferno::cuda {
namespace {

// Shared memory of an SM that the stream kernel leaves free, so that a small kernel may already wait there.
constexpr int stream_left_free = 25 << 10;

// Bytes that an SM has in flight at once: enough to keep the memory busy. With more, the kernel's other reads
// would queue up after its weights.
constexpr int stream_in_flight = 64 << 10;

constexpr int divided(int value, int by) {
  return (value + by - 1) / by;
}

GroupedShape cut(const DeviceTraits& device, const WeightView& weight, int n_tiles, int slabs) {
  const FormatTraits& format = traits_of(weight.format);
  GroupedShape shape = {.chunks = divided(weight.cols, format.chunk.cols), .n_tiles = n_tiles};
  shape.slab_chunks = divided(shape.chunks, slabs);
  shape.slabs = divided(shape.chunks, shape.slab_chunks);
  shape.token_stride = 2 * shape.slab_chunks * format.chunk.cols + format.grouped_padding;
  const int available = device.shared_limit - grouped_fixed_bytes(shape);
  shape.stages = std::min(available / grouped_stage_bytes(format.chunk), grouped_max_stages) / grouped_teams *
                 grouped_teams;
  if (shape.stages < 2 * grouped_teams) shape.stages = 0;
  return shape;
}

}  // namespace

std::optional<StreamShape> stream_shape(const DeviceTraits& device, const WeightView& weight, int vectors) {
  const FormatTraits& format = traits_of(weight.format);
  if (!format.has_stream() || weight.cols % format.chunk.cols != 0) return std::nullopt;
  StreamShape shape;
  shape.chunks = weight.cols / format.chunk.cols;
  shape.chunk_bytes = format.chunk.bytes;
  shape.parts = divided(shape.chunks, stream_warps * format.stream_chunks);
  shape.part_chunks = divided(shape.chunks, shape.parts);
  shape.parts = divided(shape.chunks, shape.part_chunks);
  shape.each = divided(shape.part_chunks, stream_warps);
  shape.used = divided(shape.part_chunks, shape.each);
  const int available = device.shared_limit - stream_left_free - stream_fixed_bytes(vectors * weight.cols) -
                        stream_ring_padding;
  shape.stages = std::min(stream_max_stages, std::max(0, available) / shape.stage_bytes());
  shape.max_in_flight = std::clamp(stream_in_flight / shape.stage_bytes(), 2, std::max(2, shape.stages));
  shape.early_in_flight = shape.max_in_flight;
  if (shape.stages < 3) return std::nullopt;
  return shape;
}

bool can_stream(const DeviceTraits& device, const WeightView& weight, int vectors) {
  // The order of columns of one matrix is followed where its input is staged.
  if (weight.columns != nullptr && weight.count > 1) return false;
  return device.overlaps && weight.layout == Layout::tiled && vectors <= stream_max_active &&
         stream_shape(device, weight, vectors).has_value();
}

int stream_blocks(const DeviceTraits& device, int rows) {
  return std::min(device.multiprocessors, divided(rows, tiles::tile_rows));
}

// All rows that a thread may ask for are among stream_router_rows.
int stream_router_shift(int experts) {
  int shift = 0;
  while (shift < 4 && (experts << (shift + 1)) <= stream_threads - 32) ++shift;
  return shift;
}

bool can_stream_router(const DeviceTraits& device, const WeightView& router) {
  if (!traits_of(router.format).has_stream_router || router.rows > stream_max_experts) return false;
  const int block_tiles = divided(divided(router.cols, tiles::tile_rows), device.multiprocessors);
  const int rows = tiles::tile_rows * block_tiles;
  return rows <= stream_router_rows &&
         divided(rows, 1 << stream_router_shift(router.rows)) <= stream_router_columns;
}

// Sums of slabs meet in the result, so only a plain product may have several.
GroupedShape grouped_shape(const DeviceTraits& device, const WeightView& weight, int n_tiles,
                           GroupedMode mode) {
  constexpr int max_slabs = 8;
  GroupedShape shape = cut(device, weight, n_tiles, 1);
  for (int slabs = 2; mode == GroupedMode::plain && shape.stages == 0 && slabs <= max_slabs; ++slabs) {
    shape = cut(device, weight, n_tiles, slabs);
  }
  return shape;
}

bool has_grouped(const DeviceTraits& device, const WeightView& weight) {
  return device.overlaps && weight.layout == Layout::tiled && weight.cols % 8 == 0 &&
         traits_of(weight.format).has_grouped() && weight.columns == nullptr;
}

int grouped_dense_n_tiles(const DeviceTraits& device, const WeightView& weight, int tokens, DType out) {
  const int all = divided(tokens, 8);
  for (int groups = 1; groups <= all; ++groups) {
    const int n_tiles = divided(all, groups);
    if (n_tiles > grouped_max_n_tiles) continue;
    const GroupedShape shape = grouped_shape(device, weight, n_tiles, GroupedMode::plain);
    if (shape.stages > 0 && (shape.slabs == 1 || out == DType::f32)) return n_tiles;
  }
  return 0;
}

}  // namespace inferno::cuda
