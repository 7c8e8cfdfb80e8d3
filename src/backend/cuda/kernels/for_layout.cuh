// From a weight's format and layout at run time to its reader in device code.
#pragma once

#include "backend/cuda/device/layouts.cuh"
#include "backend/cuda/device/scaled.cuh"
#include "backend/cuda/weight_view.h"

namespace inferno::cuda {

// The chunks of Layout::tiled. A format with a chunk in its descriptor and no reader here does not compile.
template <class... Chunks>
struct ChunkReaders {
  static constexpr bool has(WeightFormat format) { return ((Chunks::format == format) || ...); }
  template <class Visitor>
  static void visit(WeightFormat format, const Visitor& visitor) {
    (void)((Chunks::format == format && (visitor(Chunks{}), true)) || ...);
  }
};
using TiledChunks =
    ChunkReaders<Chunk16Bit<WeightFormat::bf16>, Chunk16Bit<WeightFormat::f16>, ChunkQ8_0, ChunkQ4_K,
                 ChunkMxfp4, TileQ4_0, TileInt4_32, TileInt4_64, TileInt4_128, TileInt8_32, TileInt8_64,
                 TileFp8_32, TileFp8_128, TileNvfp4_64, TileNf4_64, TileFp4_64>;

constexpr bool has_all_chunk_readers() {
  for (const FormatTraits& traits : format_traits) {
    if ((traits.layout == Layout::tiled) != TiledChunks::has(traits.format)) return false;
  }
  return true;
}
static_assert(has_all_chunk_readers());

template <class Visitor>
void for_layout(const WeightView& weight, Visitor&& visitor) {
  if (weight.layout == Layout::tiled) {
    return TiledChunks::visit(weight.format,
                              [&]<class C>(C) { visitor(Tiled<C>{weight.data, weight.tile_bytes}); });
  }
  if (weight.layout == Layout::split) return visitor(SplitQ6_K{weight.cols, weight.data, weight.row_bytes});
  visit(weight.format, [&]<Block B>(B) { visitor(Stored<B>{weight.data, weight.row_bytes}); });
}

}  // namespace inferno::cuda
