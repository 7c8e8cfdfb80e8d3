// Matrix products with the vector kernels. Decoding reads each weight once, straight from memory; a prompt
// goes through a few panels and a thousand columns at a time, so that both they and the tile that meets
// them come from the caches.
#include <algorithm>
#include <array>
#include <optional>

#include "backend/cpu/activation_tiles.h"
#include "backend/cpu/host.h"
#include "backend/cpu/operations.h"
#include "backend/cpu/panels.h"
#include "backend/cpu/product_loop.h"
#include "base/error.h"
#include "tensor/format.h"

namespace inferno::cpu {
namespace {

constexpr int panels_at_once = 4;

struct Product {
  const Compute& compute;
  Matrix out, bias;
  std::array<std::optional<ActivationTiles>, 3> tiles;  // by kind, those that a part needs
  const ActivationTiles& tiles_for(WeightFormat format) const {
    return *tiles[static_cast<std::size_t>(ActivationTiles::kind_for(*compute.kernels, format))];
  }
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
  const ActivationTiles& tiles = product.tiles_for(format);
  switch (ActivationTiles::kind_for(*product.compute.kernels, format)) {
    case ActivationTiles::Kind::integers: call.integers = tiles.integers(tile, piece.from); break;
    case ActivationTiles::Kind::floats: call.floats = tiles.floats(tile, piece.from); break;
    case ActivationTiles::Kind::terms: call.terms = tiles.terms(tile, piece.from); break;
  }
  product.compute.kernels->panel_kernel(format, tile.width)(call);
}

// The panels of the calls as a tile unit reads integers.
void unpack(const Product& product, std::span<PanelCall> calls, const Piece& piece, int worker) {
  const std::size_t panel_bytes = static_cast<std::size_t>(piece.to - piece.from) * unpacked_bytes_per_column;
  auto* memory = reinterpret_cast<std::byte*>(
      product.compute.scratch.own(worker, calls.size() * panel_bytes / sizeof(float)));
  for (PanelCall& call : calls) {
    call.blocks =
        product.compute.kernels->tiles->unpack(piece.segment.weight->format, memory, call.panel, call.blocks);
    call.panel = memory;
    memory += panel_bytes;
  }
}

// With a tile unit. What is unpacked serves all tiles.
void multiply_wide(const Product& product, std::span<PanelCall> calls, const Piece& piece,
                   std::span<const Tile> tiles, int worker) {
  const TileUnit& unit = *product.compute.kernels->tiles;
  const WeightFormat format = piece.segment.weight->format;
  if (has_integers(format)) unpack(product, calls, piece, worker);
  unit.begin(format);
  for (const Tile& tile : tiles) {
    for (const PanelCall& call : calls) run(product, call, piece, tile, format);
  }
  unit.end();
}

void multiply_piece(const Product& product, const Piece& piece, int worker) {
  const Weight& weight = *piece.segment.weight;
  const std::span<const Tile> tiles = product.tiles_for(weight.format).of_batch(piece.segment.batch_index);
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
  const std::span all(calls, static_cast<std::size_t>(piece.end - piece.begin));
  const auto narrow = std::ranges::find_if(tiles, [](const Tile& tile) { return !tile.is_wide(); });
  for (const Tile& tile : std::span(narrow, tiles.end())) {
    for (const PanelCall& call : all) run(product, call, piece, tile, weight.format);
  }
  if (narrow != tiles.begin()) multiply_wide(product, all, piece, {tiles.begin(), narrow}, worker);
}

// Panels [begin, end) of one segment, all columns.
void multiply_panels_of(const Product& product, const LoopSegment& segment, int begin, int end, int worker) {
  const int cols = segment.weight->cols;
  const auto tiles = product.tiles_for(segment.weight->format).of_batch(segment.batch_index);
  const bool wide = !tiles.empty() && tiles.front().is_wide();
  const int step = wide ? tile_columns : tiles.size() == 1 ? cols : columns_together;
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
  Product product = {compute, out, run.bias, {}};
  for (const Weight* part : run.parts) {
    const auto kind = ActivationTiles::kind_for(*compute.kernels, part->format);
    auto& tiles = product.tiles[static_cast<std::size_t>(kind)];
    if (!tiles) tiles.emplace(compute, in, batches, kind, part->column_order);
  }
  const ProductLoop loop(run.parts, batches, run.first_column, panels_of);
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
  const auto kind = ActivationTiles::kind_for(kernels, weight.format);
  const auto cols = static_cast<std::size_t>(weight.cols);
  std::size_t own = 0;
  if (panel_shape(weight.format, weight.rows, weight.cols).block_bytes == 0) {
    own = cols * (panel_rows + 1);
  } else if (kind == ActivationTiles::Kind::integers && kernels.tiles != nullptr) {
    own = panels_at_once * std::min<std::size_t>(cols, tile_columns) * unpacked_bytes_per_column /
          sizeof(float);
  }
  return {.own = own, .shared = ActivationTiles::scratch(kernels, kind, weight.cols, rows, batches)};
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
