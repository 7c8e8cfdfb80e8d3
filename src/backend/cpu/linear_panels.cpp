// Matrix products with the vector kernels. Decoding reads each weight once, straight from memory; a prompt
// goes through a few panels and a thousand columns at a time, so that both they and the tile that meets
// them come from the caches.
#include <algorithm>

#include "backend/cpu/host.h"
#include "backend/cpu/operations.h"
#include "backend/cpu/panels.h"
#include "backend/cpu/product_loop.h"
#include "base/error.h"
#include "tensor/format.h"

namespace inferno::cpu {
namespace {

// Activations as the panel kernels read them: the rows of a batch in groups of a few tokens, side by side, as
// whole numbers or as floats.
struct Tile {
  int batch = 0;  // which of the batches
  int first = 0;  // row within the batch
  int tokens = 0;
  int width = 0;                         // of the kernel, at least `tokens`; columns beyond are zero
  std::size_t integers = 0, floats = 0;  // offsets in the memory of all tiles
};

class Tiles {
 public:
  struct Wanted {
    bool integers = false;  // for quantized weights: in.cols is then a multiple of 32
    bool floats = false;
  };
  // Cuts each batch into tiles and fills them. The memory is scratch: valid until the next Tiles.
  // `column_order` is that of Weight, or empty.
  Tiles(const Compute& compute, Matrix in, std::span<const ExpertBatch> batches, Wanted wanted,
        std::span<const std::int32_t> column_order);

  std::span<const Tile> of_batch(int batch) const;
  // From column `column` on, a multiple of 32.
  IntegerTile integers(const Tile& tile, int column) const;
  const float* floats(const Tile& tile, int column) const;

 private:
  void cut(const Compute& compute, std::span<const ExpertBatch> batches, Wanted wanted);
  struct Rows {
    Matrix in;
    const ExpertBatch& batch;
    std::span<const std::int32_t> column_order;
    float* reordered;  // memory for one row
    const float* operator[](int i) const;
  };
  void fill(const Compute& compute, const Tile& tile, const Rows& rows, Wanted wanted) const;

  int cols_;
  float* memory_ = nullptr;
  std::size_t size_ = 0;
  std::vector<Tile> tiles_;
  std::vector<std::size_t> first_of_batch_;
};

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

Tiles::Tiles(const Compute& compute, Matrix in, std::span<const ExpertBatch> batches, Wanted wanted,
             std::span<const std::int32_t> column_order)
    : cols_(in.cols) {
  cut(compute, batches, wanted);
  memory_ = compute.scratch.shared(Scratch::Use::tiles, size_);
  const auto count = static_cast<std::int64_t>(tiles_.size());
  const std::int64_t cost = std::int64_t{2} * cols_ * (tiles_.empty() ? 1 : tiles_[0].width);
  compute.pool.parallel_for(count, grain_for(compute.pool, count, cost), [&](const auto& range) {
    float* row =
        column_order.empty() ? nullptr : compute.scratch.own(range.worker, static_cast<std::size_t>(cols_));
    for (auto i = range.begin; i < range.end; ++i) {
      const Tile& tile = tiles_[static_cast<std::size_t>(i)];
      fill(compute, tile, {in, batches[static_cast<std::size_t>(tile.batch)], column_order, row}, wanted);
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

// Row i of the batch, in the order of the weight's columns.
const float* Tiles::Rows::operator[](int i) const {
  const float* row = floats_of(in, batch, i);
  if (column_order.empty()) return row;
  const std::int32_t* order = column_order.data() + std::int64_t{batch.expert} * in.cols;
  for (int c = 0; c < in.cols; ++c) reordered[c] = row[order[c]];
  return reordered;
}

void Tiles::fill(const Compute& compute, const Tile& tile, const Rows& rows, Wanted wanted) const {
  const IntegerShape shape(cols_, tile.width);
  float* integers = memory_ + tile.integers;
  float* values = memory_ + tile.floats;
  // Memory is reused, so columns without a token may hold NaN or infinity from an earlier batch.
  if (wanted.integers && tile.tokens < tile.width) std::fill_n(integers, shape.end, 0.0f);
  if (wanted.floats && (tile.tokens < tile.width || cols_ % 2 != 0)) {
    std::fill_n(values, float_size(cols_, tile.width), 0.0f);
  }
  for (int t = 0; t < tile.tokens; ++t) {
    const int i = tile.first + t;
    const float* row = rows[i];
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

constexpr int panels_at_once = 4;

struct Product {
  const Compute& compute;
  Matrix out, bias;
  const Tiles& tiles;
};

int panels_of(const Weight& weight) {
  return (weight.rows + panel_rows - 1) / panel_rows;
}

// Panels [begin, end) of one segment for columns [from, to).
struct Piece {
  const LoopSegment& segment;
  int begin, end;
  int from, to;
};

// 16 rows of a format without panels, decoded to a panel of floats: [to - from, 16].
void decode_panel(float* panel, float* row, const Piece& piece, int at) {
  const Weight& weight = *piece.segment.weight;
  const int elements = block_elements(weight.format);
  const std::size_t row_bytes = bytes_for(weight.format, static_cast<std::size_t>(weight.cols));
  const std::size_t skip = bytes_for(weight.format, static_cast<std::size_t>(piece.from));
  const auto count = static_cast<std::size_t>(piece.to - piece.from);
  expects(piece.from % elements == 0, "columns are taken in whole blocks");
  std::fill_n(panel, count * panel_rows, 0.0f);
  for (int r = 0; r < std::min(panel_rows, weight.rows - at * panel_rows); ++r) {
    const std::int64_t stored = std::int64_t{piece.segment.batch->expert} * weight.rows + at * panel_rows + r;
    const std::byte* blocks = weight.memory.data() + static_cast<std::size_t>(stored) * row_bytes + skip;
    decode(weight.format, {blocks, bytes_for(weight.format, count)}, {row, count});
    for (std::size_t c = 0; c < count; ++c) panel[c * panel_rows + static_cast<std::size_t>(r)] = row[c];
  }
}

// Everything about a call that does not depend on the tile.
PanelCall call_for(const Product& product, const Piece& piece, int at) {
  const Weight& weight = *piece.segment.weight;
  const ExpertBatch& batch = *piece.segment.batch;
  PanelCall call;
  call.rows = std::min(panel_rows, weight.rows - at * panel_rows);
  call.stride = product.out.cols;
  call.continues = piece.from > 0;
  static const bool prefetches = wants_prefetch();
  call.prefetches = prefetches;
  const int column = piece.segment.column + at * panel_rows;
  call.out = floats(product.out, batch.first) + column;
  if (product.bias && !call.continues) call.bias = floats(product.bias, batch.expert) + column;
  return call;
}

void set_weights(PanelCall& call, const PanelShape& shape, const Piece& piece, int at) {
  const auto expert = static_cast<std::size_t>(piece.segment.batch->expert);
  call.panel = piece.segment.weight->memory.data() + expert * shape.matrix_bytes() +
               static_cast<std::size_t>(at) * shape.panel_bytes() +
               static_cast<std::size_t>(piece.from / shape.block_columns) * shape.block_bytes;
  call.blocks = (piece.to - piece.from + shape.block_columns - 1) / shape.block_columns;
}

void run(const Product& product, PanelCall call, const Piece& piece, const Tile& tile, WeightFormat format) {
  call.out += tile.first * call.stride;
  call.tokens = tile.tokens;
  if (has_integers(format)) {
    call.integers = product.tiles.integers(tile, piece.from);
  } else {
    call.floats = product.tiles.floats(tile, piece.from);
  }
  product.compute.kernels->panel_kernel(format, tile.width)(call);
}

void multiply_piece(const Product& product, const Piece& piece, int worker) {
  const Weight& weight = *piece.segment.weight;
  const std::span<const Tile> tiles = product.tiles.of_batch(piece.segment.batch_index);
  const PanelShape shape = panel_shape(weight.format, weight.rows, weight.cols);
  PanelCall calls[panels_at_once];
  if (shape.block_bytes == 0) {
    const auto count = static_cast<std::size_t>(piece.to - piece.from);
    float* panel = product.compute.scratch.own(worker, count * (panel_rows + 1));
    for (int at = piece.begin; at < piece.end; ++at) {
      decode_panel(panel, panel + count * panel_rows, piece, at);
      calls[0] = call_for(product, piece, at);
      calls[0].panel = reinterpret_cast<const std::byte*>(panel);
      calls[0].blocks = piece.to - piece.from;
      for (const Tile& tile : tiles) run(product, calls[0], piece, tile, WeightFormat::f32);
    }
    return;
  }
  for (int at = piece.begin; at < piece.end; ++at) {
    calls[at - piece.begin] = call_for(product, piece, at);
    set_weights(calls[at - piece.begin], shape, piece, at);
  }
  for (const Tile& tile : tiles) {
    for (int i = 0; i < piece.end - piece.begin; ++i) run(product, calls[i], piece, tile, weight.format);
  }
}

// Panels [begin, end) of one segment, all columns.
void multiply_panels_of(const Product& product, const LoopSegment& segment, int begin, int end, int worker) {
  const int cols = segment.weight->cols;
  const bool once = product.tiles.of_batch(segment.batch_index).size() == 1;
  const int step = once ? cols : columns_together;
  for (int at = begin; at < end; at += panels_at_once) {
    for (int from = 0; from < cols; from += step) {
      multiply_piece(product,
                     {segment, at, std::min(end, at + panels_at_once), from, std::min(cols, from + step)},
                     worker);
    }
  }
}

// Some of a product's parts.
struct PartRun {
  std::span<const Weight* const> parts;
  int first_column = 0;  // of the output
  Matrix bias;           // of all parts
};

// Parts whose columns have the same order, hence read the same tiles.
void multiply_together(const Compute& compute, Matrix out, Matrix in, const PartRun& run,
                       std::span<const ExpertBatch> batches) {
  Tiles::Wanted wanted;
  for (const Weight* part : run.parts) {
    (has_integers(part->format) ? wanted.integers : wanted.floats) = true;
  }
  const Tiles tiles(compute, in, batches, wanted, run.parts.front()->column_order);
  const ProductLoop loop(run.parts, batches, run.first_column, panels_of);
  const Product product = {compute, out, run.bias, tiles};
  const std::int64_t cost = std::int64_t{in.cols} * panel_rows;
  const std::int64_t grain = grain_for(compute.pool, loop.total(), cost);
  compute.pool.parallel_for(loop.total(), grain, [&](const auto& range) {
    loop.each(range.begin, range.end, [&](const LoopSegment& segment, int begin, int end) {
      multiply_panels_of(product, segment, begin, end, range.worker);
    });
  });
}

}  // namespace

ScratchFloats multiply_panels_scratch(const Kernels& kernels, const WeightShape& weight, std::int64_t rows,
                                      std::int64_t batches) {
  const int width = kernels.widths[kernels.width_count - 1];
  const std::size_t tile =
      has_integers(weight.format) ? IntegerShape(weight.cols, width).end : float_size(weight.cols, width);
  const auto tiles = static_cast<std::size_t>(rows / width + std::min(rows, batches));
  const bool decodes = panel_shape(weight.format, weight.rows, weight.cols).block_bytes == 0;
  return {.own = decodes ? static_cast<std::size_t>(weight.cols) * (panel_rows + 1) : 0,
          .shared = tiles * tile};
}

void multiply_panels(const Compute& compute, Matrix out, Matrix in, const Linear& weights,
                     std::span<const ExpertBatch> batches) {
  const std::span<const Weight* const> parts = weights.parts;
  PartRun run = {.parts = {}, .first_column = 0, .bias = weights.bias};
  for (std::size_t first = 0; first < parts.size(); first += run.parts.size()) {
    std::size_t end = first + 1;
    while (end < parts.size() && parts[end]->column_order == parts[first]->column_order) ++end;
    run.parts = parts.subspan(first, end - first);
    multiply_together(compute, out, in, run, batches);
    for (const Weight* part : run.parts) run.first_column += part->rows;
  }
}

}  // namespace inferno::cpu
