// Products of bytes for codecs of stream.cuh: inputs are sixteen bits, a high and a low byte for each column.
// Four blocks of 32 columns make two products: blocks 0 and 1 are rows g and g + 8 of the first, blocks 2 and
// 3 of the second. Of the tensor cores' eight columns two belong to each of the four, one for the high bytes
// and one for the low ones, zero in the product that is not theirs. So lane (g, t) ends with both sums of
// block t: as row g where t is even, as row g + 8 where it is odd. They are exact integers.
#pragma once

#include "backend/cuda/kernels/linear/stream.cuh"

namespace inferno::cuda {

// Weights are signed bytes or, where `Unsigned`, bytes from 0 to 255.
template <bool Unsigned>
__device__ void multiply_add_bytes(std::int32_t (&c)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                   std::uint32_t a3, uint2 b) {
  if constexpr (Unsigned) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b.x), "r"(b.y));
  } else {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b.x), "r"(b.y));
  }
}

// Eight columns of four blocks.
struct ByteWeights {
  uint2 blocks[4];
};

template <bool Unsigned>
__device__ float four_blocks(const ByteWeights& weights, const std::byte* in, int lane) {
  const auto& w = weights.blocks;
  const uint2 own = *reinterpret_cast<const uint2*>(in + 32 * (lane / 4 % 2) + 8 * (lane % 4));
  const uint2 none = make_uint2(0, 0);
  std::int32_t c[4] = {};
  multiply_add_bytes<Unsigned>(c, w[0].x, w[1].x, w[0].y, w[1].y, lane < 16 ? own : none);
  multiply_add_bytes<Unsigned>(c, w[2].x, w[3].x, w[2].y, w[3].y, lane < 16 ? none : own);
  const bool even = lane % 2 == 0;
  return static_cast<float>(256 * (even ? c[0] : c[2]) + (even ? c[1] : c[3]));
}

// Codec::Sums of codecs that multiply one tile after the other, a chunk of both at a time.
template <class Codec>
struct TileSums {
  struct Inputs {
    typename Codec::Inputs first, second;
    __device__ void load(const StreamRoom& room, int a, int b, int, int lane) {
      first.load(room, a, lane);
      second.load(room, b, lane);
    }
  };
  float2 sums = {};
  __device__ float2 rows(int) const { return sums; }
  __device__ void add(const StreamPiece& piece, const Inputs& in, int lane) {
#pragma unroll 1
    for (int chunk = 0; chunk < piece.chunks; chunk += Codec::at_once) {
      const bool all = chunk + Codec::at_once <= piece.chunks;
      sums.x += Codec::multiply(piece.data, chunk, all, in.first, lane);
      sums.y += Codec::multiply(piece.data + piece.to_second, chunk, all, in.second, lane);
    }
  }
};

}  // namespace inferno::cuda
