// From a weight's format and layout at run time to its reader.
#pragma once

#include "backend/cuda/device/layouts.cuh"
#include "backend/cuda/kernels/linear/weights.h"

namespace inferno::cuda {

template <class Visitor>
void for_tiles(const WeightView& weight, Visitor&& visitor) {
  const auto visit_chunks = [&]<class C>(C) { visitor(Tiled<C>{weight.data, weight.tile_bytes}); };
  if (weight.format == WeightFormat::bf16) return visit_chunks(Chunk16Bit<WeightFormat::bf16>{});
  if (weight.format == WeightFormat::f16) return visit_chunks(Chunk16Bit<WeightFormat::f16>{});
  if (weight.format == WeightFormat::q8_0) return visit_chunks(ChunkQ8_0{});
  if (weight.format == WeightFormat::q4_k) return visit_chunks(ChunkQ4_K{});
  visit_chunks(ChunkMxfp4{});
}

template <class Visitor>
void for_layout(const WeightView& weight, Visitor&& visitor) {
  if (weight.layout == Layout::tiled) return for_tiles(weight, visitor);
  if (weight.layout == Layout::split) return visitor(SplitQ6_K{weight.cols, weight.data, weight.row_bytes});
  visit(weight.format, [&]<Block B>(B) { visitor(Stored<B>{weight.data, weight.row_bytes}); });
}

}  // namespace inferno::cuda
