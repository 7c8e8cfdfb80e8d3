#include "backend/cpu/tiles.h"

#include <algorithm>

#include "backend/cpu/views.h"

namespace inferno::cpu {
namespace {

constexpr std::size_t aligned(std::size_t floats) {
  return (floats + 15) / 16 * 16;
}

// Floats an IntegerTile takes: pairs, scales, sums of 16, sums of 32, low and high bytes, offsets.
struct IntegerShape {
  std::size_t pairs, scales, sums16, sums32, low, high, offsets, end;
  IntegerShape(int cols, int width) {
    const std::size_t elements = static_cast<std::size_t>(cols) * static_cast<std::size_t>(width);
    pairs = 0;
    scales = aligned(elements / 2);
    sums16 = scales + aligned(elements / 32);
    sums32 = sums16 + aligned(elements / 16);
    low = sums32 + aligned(elements / 32);
    const std::size_t in_bytes = width <= max_byte_tokens ? elements : 0;
    high = low + aligned(in_bytes / 4);
    offsets = high + aligned(in_bytes / 4);
    end = offsets + aligned(in_bytes / 32);
  }
};

// An odd last column has a zero beside it, because BF16 panels come in pairs of columns.
std::size_t float_size(int cols, int width) {
  return aligned(static_cast<std::size_t>(cols + cols % 2) * static_cast<std::size_t>(width));
}

}  // namespace

Tiles::Tiles(const Compute& compute, Matrix in, std::span<const ExpertBatch> batches, Wanted wanted)
    : cols_(in.cols) {
  cut(compute, batches, wanted);
  memory_ = compute.scratch.shared(Scratch::Use::tiles, size_);
  const auto count = static_cast<std::int64_t>(tiles_.size());
  const std::int64_t cost = std::int64_t{2} * cols_ * (tiles_.empty() ? 1 : tiles_[0].width);
  compute.pool.parallel_for(count, grain_for(compute.pool, count, cost), [&](const auto& range) {
    for (auto i = range.begin; i < range.end; ++i) {
      const Tile& tile = tiles_[static_cast<std::size_t>(i)];
      fill(compute, tile, in, batches[static_cast<std::size_t>(tile.batch)], wanted);
    }
  });
}

void Tiles::cut(const Compute& compute, std::span<const ExpertBatch> batches, Wanted wanted) {
  const std::span<const int> widths(compute.kernels->widths,
                                    static_cast<std::size_t>(compute.kernels->width_count));
  for (std::size_t b = 0; b < batches.size(); ++b) {
    first_of_batch_.push_back(tiles_.size());
    for (int first = 0; first < batches[b].count; first += widths.back()) {
      Tile tile = {.batch = static_cast<int>(b), .first = first};
      tile.tokens = std::min(batches[b].count - first, widths.back());
      tile.width = *std::ranges::lower_bound(widths, tile.tokens);
      tile.integers = size_;
      if (wanted.integers) size_ += IntegerShape(cols_, tile.width).end;
      tile.floats = size_;
      if (wanted.floats) size_ += float_size(cols_, tile.width);
      tiles_.push_back(tile);
    }
  }
  first_of_batch_.push_back(tiles_.size());
}

void Tiles::fill(const Compute& compute, const Tile& tile, const Matrix& in, const ExpertBatch& batch,
                 Wanted wanted) const {
  const IntegerShape shape(cols_, tile.width);
  float* integers = memory_ + tile.integers;
  float* values = memory_ + tile.floats;
  // Memory is reused: what another batch left in columns without a token may be NaN or infinite.
  if (wanted.integers && tile.tokens < tile.width) std::fill_n(integers, shape.end, 0.0f);
  if (wanted.floats && (tile.tokens < tile.width || cols_ % 2 != 0)) {
    std::fill_n(values, float_size(cols_, tile.width), 0.0f);
  }
  for (int t = 0; t < tile.tokens; ++t) {
    const int i = tile.first + t;
    const float* row = floats_of(in, batch, i);
    if (wanted.integers) {
      compute.kernels->quantize({.in = row,
                                 .cols = cols_,
                                 .width = tile.width,
                                 .pairs = reinterpret_cast<std::int32_t*>(integers) + t,
                                 .scales = integers + shape.scales + t,
                                 .sums16 = integers + shape.sums16 + t,
                                 .sums32 = integers + shape.sums32 + t,
                                 .low = reinterpret_cast<std::int32_t*>(integers + shape.low) + t,
                                 .high = reinterpret_cast<std::int32_t*>(integers + shape.high) + t,
                                 .offsets = reinterpret_cast<std::int32_t*>(integers + shape.offsets) + t});
    }
    if (wanted.floats) {
      for (std::ptrdiff_t c = 0; c < cols_; ++c) values[c * tile.width + t] = row[c];
    }
  }
}

std::span<const Tile> Tiles::of_batch(int batch) const {
  const std::size_t begin = first_of_batch_[static_cast<std::size_t>(batch)];
  const std::size_t end = first_of_batch_[static_cast<std::size_t>(batch) + 1];
  return std::span(tiles_).subspan(begin, end - begin);
}

IntegerTile Tiles::integers(const Tile& tile, int column) const {
  const IntegerShape shape(cols_, tile.width);
  const float* base = memory_ + tile.integers;
  const std::ptrdiff_t skip = std::ptrdiff_t{column} * tile.width;
  return {.pairs = reinterpret_cast<const std::int32_t*>(base) + skip / 2,
          .scales = base + shape.scales + skip / 32,
          .sums16 = base + shape.sums16 + skip / 16,
          .sums32 = base + shape.sums32 + skip / 32,
          .low = reinterpret_cast<const std::int32_t*>(base + shape.low) + skip / 4,
          .high = reinterpret_cast<const std::int32_t*>(base + shape.high) + skip / 4,
          .offsets = reinterpret_cast<const std::int32_t*>(base + shape.offsets) + skip / 32};
}

const float* Tiles::floats(const Tile& tile, int column) const {
  return memory_ + tile.floats + std::ptrdiff_t{column} * tile.width;
}

}  // namespace inferno::cpu
