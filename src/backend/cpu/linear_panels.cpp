// Matrix products with the vector kernels. Decoding reads each weight once, straight from memory; a prompt
// goes through a few panels and a thousand columns at a time, so that both they and the tile that meets
// them come from the caches.
#include <algorithm>

#include "backend/cpu/isa.h"
#include "backend/cpu/operations.h"
#include "backend/cpu/panels.h"
#include "backend/cpu/stretches.h"
#include "backend/cpu/tiles.h"
#include "backend/cpu/views.h"
#include "base/error.h"
#include "tensor/decode.h"

namespace inferno::cpu {
namespace {

constexpr int panels_at_once = 4;
// A multiple of every block. Float kernels end a sum there, so that a product of one tile must stop there
// too.
constexpr int columns_at_once = 1024;

struct Product {
  const Compute& compute;
  Matrix out, bias;
  const Tiles& tiles;
};

int panels_of(const Weight& weight) {
  return (weight.rows + panel_rows - 1) / panel_rows;
}

// Panels [begin, end) of one stretch for columns [from, to).
struct Piece {
  const Stretch& stretch;
  int begin, end;
  int from, to;
};

// 16 rows of a format without panels, decoded to a panel of floats: [to - from, 16].
void decode_panel(float* panel, float* row, const Piece& piece, int at) {
  const Weight& weight = *piece.stretch.weight;
  const int elements = block_elements(weight.format);
  const std::size_t row_bytes = bytes_for(weight.format, static_cast<std::size_t>(weight.cols));
  const std::size_t skip = bytes_for(weight.format, static_cast<std::size_t>(piece.from));
  const auto count = static_cast<std::size_t>(piece.to - piece.from);
  expects(piece.from % elements == 0, "columns are taken in whole blocks");
  std::fill_n(panel, count * panel_rows, 0.0f);
  for (int r = 0; r < std::min(panel_rows, weight.rows - at * panel_rows); ++r) {
    const std::int64_t stored = std::int64_t{piece.stretch.batch->expert} * weight.rows + at * panel_rows + r;
    const std::byte* blocks = weight.memory.data() + static_cast<std::size_t>(stored) * row_bytes + skip;
    decode(weight.format, {blocks, bytes_for(weight.format, count)}, {row, count});
    for (std::size_t c = 0; c < count; ++c) panel[c * panel_rows + static_cast<std::size_t>(r)] = row[c];
  }
}

// Everything about a call that does not depend on the tile.
PanelCall call_for(const Product& product, const Piece& piece, int at) {
  const Weight& weight = *piece.stretch.weight;
  const ExpertBatch& batch = *piece.stretch.batch;
  PanelCall call;
  call.rows = std::min(panel_rows, weight.rows - at * panel_rows);
  call.stride = product.out.cols;
  call.continues = piece.from > 0;
  static const bool asks_ahead = wants_read_ahead();
  call.asks_ahead = asks_ahead;
  const int column = piece.stretch.column + at * panel_rows;
  call.out = floats(product.out, batch.first) + column;
  if (product.bias && !call.continues) call.bias = floats(product.bias, batch.expert) + column;
  return call;
}

void set_weights(PanelCall& call, const PanelShape& shape, const Piece& piece, int at) {
  const auto expert = static_cast<std::size_t>(piece.stretch.batch->expert);
  call.panel = piece.stretch.weight->memory.data() + expert * shape.matrix_bytes() +
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
  const Weight& weight = *piece.stretch.weight;
  const std::span<const Tile> tiles = product.tiles.of_batch(piece.stretch.batch_index);
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

// Panels [begin, end) of one stretch, all columns.
void multiply_panels_of(const Product& product, const Stretch& stretch, int begin, int end, int worker) {
  const int cols = stretch.weight->cols;
  // With one tile every weight is read once, and fastest in the order in which they lie.
  const bool once = product.tiles.of_batch(stretch.batch_index).size() == 1;
  const int step = once && has_integers(stretch.weight->format) ? cols : columns_at_once;
  const int together = once ? 1 : panels_at_once;
  for (int at = begin; at < end; at += together) {
    for (int from = 0; from < cols; from += step) {
      multiply_piece(product, {stretch, at, std::min(end, at + together), from, std::min(cols, from + step)},
                     worker);
    }
  }
}

}  // namespace

void multiply_panels(const Compute& compute, Matrix out, Matrix in, const Linear& weights,
                     std::span<const ExpertBatch> batches) {
  Tiles::Wanted wanted;
  for (const Weight* part : weights.parts) {
    (has_integers(part->format) ? wanted.integers : wanted.floats) = true;
  }
  const Tiles tiles(compute, in, batches, wanted);
  const Stretches stretches(weights, batches, panels_of);
  const Product product = {compute, out, weights.bias, tiles};
  const std::int64_t cost = std::int64_t{in.cols} * panel_rows;
  const std::int64_t grain = grain_for(compute.pool, stretches.total(), cost);
  compute.pool.parallel_for(stretches.total(), grain, [&](const auto& range) {
    stretches.each(range.begin, range.end, [&](const Stretch& stretch, int begin, int end) {
      multiply_panels_of(product, stretch, begin, end, range.worker);
    });
  });
}

}  // namespace inferno::cpu
