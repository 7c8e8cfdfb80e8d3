#include "backend/cpu/activation_tiles.h"

#include <algorithm>

#include "backend/cpu/panels.h"

namespace inferno::cpu {
namespace {

constexpr std::size_t aligned(std::size_t floats) {
  return (floats + 15) / 16 * 16;
}

// Floats an IntegerTile takes: pairs, scales, sums of 16, sums of 32, low and high bytes, offsets, or instead
// of pairs the bytes of a TileUnit.
struct IntegerShape {
  std::size_t pairs, bytes, scales, sums16, sums32, low, high, offsets, end;
  IntegerShape(int cols, int width) {
    const std::size_t elements = static_cast<std::size_t>(cols) * static_cast<std::size_t>(width);
    pairs = bytes = 0;
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

// Two terms of whole groups of 32 columns: floats, or two bytes each for a unit.
std::size_t term_size(int cols, int width) {
  const std::size_t elements =
      static_cast<std::size_t>((cols + 31) / 32 * 32) * static_cast<std::size_t>(width);
  return width < tile_tokens ? 2 * elements : elements;
}

std::size_t size_of(ActivationTiles::Kind kind, int cols, int width) {
  switch (kind) {
    case ActivationTiles::Kind::integers: return IntegerShape(cols, width).end;
    case ActivationTiles::Kind::floats: return float_size(cols, width);
    case ActivationTiles::Kind::terms: return term_size(cols, width);
  }
  return 0;
}

Scratch::Use use_of(ActivationTiles::Kind kind) {
  switch (kind) {
    case ActivationTiles::Kind::integers: return Scratch::Use::integer_tiles;
    case ActivationTiles::Kind::floats: break;
    case ActivationTiles::Kind::terms: return Scratch::Use::term_tiles;
  }
  return Scratch::Use::float_tiles;
}

}  // namespace

ActivationTiles::Kind ActivationTiles::kind_for(const Kernels& kernels, WeightFormat format) {
  if (has_integers(format)) return Kind::integers;
  return format == WeightFormat::bf16 && kernels.tiles != nullptr ? Kind::terms : Kind::floats;
}

std::span<const int> ActivationTiles::widths(const Kernels& kernels, Kind kind) {
  static constexpr int of_tile_unit[] = {1, 2, 4, 8, tile_tokens};
  static constexpr int of_terms[] = {1, 2, 4, tile_tokens, 2 * tile_tokens};
  if (kind == Kind::terms) return of_terms;
  if (kind == Kind::integers && kernels.tiles != nullptr) return of_tile_unit;
  return {kernels.widths, static_cast<std::size_t>(kernels.width_count)};
}

std::size_t ActivationTiles::scratch(const Kernels& kernels, Kind kind, int cols, std::int64_t rows,
                                     std::int64_t batches) {
  const int width = widths(kernels, kind).back();
  return static_cast<std::size_t>(rows / width + std::min(rows, batches)) * size_of(kind, cols, width);
}

ActivationTiles::ActivationTiles(const Compute& compute, Matrix in, std::span<const ExpertBatch> batches,
                                 Kind kind, std::span<const std::int32_t> column_order)
    : kind_(kind), cols_(in.cols) {
  cut(*compute.kernels, batches);
  memory_ = compute.scratch.shared(use_of(kind), size_);
  const auto count = static_cast<std::int64_t>(tiles_.size());
  const std::int64_t cost = std::int64_t{2} * cols_ * (tiles_.empty() ? 1 : tiles_[0].width);
  compute.pool.parallel_for(count, grain_for(compute.pool, count, cost), [&](const auto& range) {
    float* row =
        column_order.empty() ? nullptr : compute.scratch.own(range.worker, static_cast<std::size_t>(cols_));
    for (auto i = range.begin; i < range.end; ++i) {
      const Tile& tile = tiles_[static_cast<std::size_t>(i)];
      fill(*compute.kernels, tile, {in, batches[static_cast<std::size_t>(tile.batch)], column_order, row});
    }
  });
}

void ActivationTiles::cut(const Kernels& kernels, std::span<const ExpertBatch> batches) {
  const std::span<const int> all = widths(kernels, kind_);
  for (std::size_t b = 0; b < batches.size(); ++b) {
    first_of_batch_.push_back(tiles_.size());
    for (int first = 0; first < batches[b].count; first += all.back()) {
      Tile tile = {.batch = static_cast<int>(b), .first = first};
      tile.tokens = std::min(batches[b].count - first, all.back());
      tile.width = *std::ranges::lower_bound(all, tile.tokens);
      tile.offset = size_;
      size_ += size_of(kind_, cols_, tile.width);
      tiles_.push_back(tile);
    }
  }
  first_of_batch_.push_back(tiles_.size());
}

// Row i of the batch, in the order of the weight's columns.
const float* ActivationTiles::Rows::operator[](int i) const {
  const float* row = floats_of(in, batch, i);
  if (column_order.empty()) return row;
  const std::int32_t* order = column_order.data() + std::int64_t{batch.expert} * in.cols;
  for (int c = 0; c < in.cols; ++c) reordered[c] = row[order[c]];
  return reordered;
}

void ActivationTiles::fill(const Kernels& kernels, const Tile& tile, const Rows& rows) const {
  // Memory is reused, so columns without a token may hold NaN or infinity from an earlier batch.
  float* values = memory_ + tile.offset;
  if (tile.tokens < tile.width || (kind_ != Kind::integers && cols_ % 32 != 0)) {
    std::fill_n(values, size_of(kind_, cols_, tile.width), 0.0f);
  }
  if (kind_ == Kind::integers) return fill_integers(kernels, tile, rows);
  for (int t = 0; t < tile.tokens; ++t) {
    const float* row = rows[tile.first + t];
    if (kind_ == Kind::terms) {
      float* first = values + (tile.is_wide() ? 16 * t : t);  // 32 columns of two bytes
      kernels.tiles->split({.in = row, .cols = cols_, .width = tile.width, .terms = first});
      continue;
    }
    for (std::ptrdiff_t c = 0; c < cols_; ++c) values[c * tile.width + t] = row[c];
  }
}

void ActivationTiles::fill_integers(const Kernels& kernels, const Tile& tile, const Rows& rows) const {
  constexpr int plane = tile_tokens * activation_group / 4, row_ints = activation_group / 4;
  const IntegerShape shape(cols_, tile.width);
  float* memory = memory_ + tile.offset;
  const auto ints = [memory](std::size_t offset) { return reinterpret_cast<std::int32_t*>(memory + offset); };
  for (int t = 0; t < tile.tokens; ++t) {
    QuantizeCall call = {.in = rows[tile.first + t],
                         .cols = cols_,
                         .width = tile.width,
                         .scales = memory + shape.scales + t,
                         .sums16 = memory + shape.sums16 + t,
                         .sums32 = memory + shape.sums32 + t};
    if (tile.is_wide()) {
      call.high = ints(shape.bytes) + t * row_ints;
      call.low = call.high + plane;
      kernels.tiles->quantize(call);
    } else {
      call.pairs = ints(shape.pairs) + t;
      call.low = ints(shape.low) + t;
      call.high = ints(shape.high) + t;
      call.offsets = ints(shape.offsets) + t;
      kernels.quantize(call);
    }
  }
}

std::span<const Tile> ActivationTiles::of_batch(int batch) const {
  const std::size_t begin = first_of_batch_[static_cast<std::size_t>(batch)];
  const std::size_t end = first_of_batch_[static_cast<std::size_t>(batch) + 1];
  return std::span(tiles_).subspan(begin, end - begin);
}

IntegerTile ActivationTiles::integers(const Tile& tile, int column) const {
  const IntegerShape shape(cols_, tile.width);
  const float* base = memory_ + tile.offset;
  const std::ptrdiff_t skip = std::ptrdiff_t{column} * tile.width;
  IntegerTile found = {.scales = base + shape.scales + skip / 32,
                       .sums16 = base + shape.sums16 + skip / 16,
                       .sums32 = base + shape.sums32 + skip / 32};
  if (tile.is_wide()) {
    found.bytes = reinterpret_cast<const std::int8_t*>(base + shape.bytes) + skip * 2;
    return found;
  }
  found.pairs = reinterpret_cast<const std::int32_t*>(base + shape.pairs) + skip / 2;
  found.low = reinterpret_cast<const std::int32_t*>(base + shape.low) + skip / 4;
  found.high = reinterpret_cast<const std::int32_t*>(base + shape.high) + skip / 4;
  found.offsets = reinterpret_cast<const std::int32_t*>(base + shape.offsets) + skip / 32;
  return found;
}

const void* ActivationTiles::terms(const Tile& tile, int column) const {
  const std::ptrdiff_t elements = std::ptrdiff_t{column} * tile.width;
  return memory_ + tile.offset + (tile.is_wide() ? elements : 2 * elements);
}

const float* ActivationTiles::floats(const Tile& tile, int column) const {
  return memory_ + tile.offset + std::ptrdiff_t{column} * tile.width;
}

}  // namespace inferno::cpu
