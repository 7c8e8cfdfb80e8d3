// Products of the stream kernels whose weights are multiplied as bytes. Inputs are int16, a high and a low
// byte per column. Four blocks of 32 columns make two products: blocks 0 and 1 are rows g and g + 8 of the
// first, blocks 2 and 3 of the second. Of the eight columns of operand b, two belong to each block, one for
// the high bytes and one for the low bytes; they are zero in the other product. So lane (g, t) ends with both
// exact sums of block t: as row g if t is even, as row g + 8 if it is odd.
#pragma once

#include "backend/cuda/kernels/linear/stream_kernel.cuh"

namespace inferno::cuda {

// Eight columns of four blocks.
struct ByteWeights {
  uint2 blocks[4];
};

// Operand b of both products. `in`: the block that the lane's column belongs to.
struct ByteColumns {
  uint2 first, second;
  __device__ ByteColumns(const std::byte* in, int lane) {
    const uint2 own = *reinterpret_cast<const uint2*>(in + 32 * (lane / 4 % 2) + 8 * (lane % 4));
    const uint2 none = make_uint2(0, 0);
    first = lane < 16 ? own : none;
    second = lane < 16 ? none : own;
  }
};

template <bool Unsigned>
__device__ float mma_four_blocks(const ByteWeights& weights, const ByteColumns& columns, int lane) {
  const auto& w = weights.blocks;
  std::int32_t c[4] = {};
  mma_int8<Unsigned>(c, w[0].x, w[1].x, w[0].y, w[1].y, columns.first);
  mma_int8<Unsigned>(c, w[2].x, w[3].x, w[2].y, w[3].y, columns.second);
  const bool even = lane % 2 == 0;
  return static_cast<float>(256 * (even ? c[0] : c[2]) + (even ? c[1] : c[3]));
}

}  // namespace inferno::cuda
