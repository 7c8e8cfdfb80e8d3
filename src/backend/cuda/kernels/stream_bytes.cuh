// Products of bytes for codecs of stream.cuh: inputs are sixteen bits, a high and a low byte for each column.
// Of the tensor cores' eight columns two belong to each of four blocks of 32, one for the high bytes and one
// for the low ones, zero for all other blocks. So after four blocks lane (g, t) holds both sums of row g and
// block t: exact integers.
#pragma once

#include "backend/cuda/kernels/stream.cuh"

namespace inferno::cuda {

using ByteSums = std::int32_t[4];  // row g: high, low; row g + 8: high, low

// Weights are signed bytes or, where `Unsigned`, bytes from 0 to 255.
template <bool Unsigned>
__device__ void multiply_add_bytes(ByteSums& c, std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
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

struct ByteInputs {
  const std::byte* x;  // this lane's bytes of the warp's first block
  const float *factors, *sums;
  int own;  // which of four blocks the lane's column belongs to
  __device__ void load(const StreamRoom& room, int block, int lane) {
    const int g = lane / 4, t = lane % 4;
    x = room.in + 64 * block + 32 * (g % 2) + 8 * t;
    factors = room.factors + block + t;
    sums = room.sums + block + t;
    own = g / 2;
  }
  __device__ uint2 of(int block) const {
    const uint2 bytes = *reinterpret_cast<const uint2*>(x + 64 * block);
    return own == block % 4 ? bytes : make_uint2(0, 0);
  }
};

__device__ inline float joined(std::int32_t high, std::int32_t low) {
  return static_cast<float>(256 * high + low);
}

}  // namespace inferno::cuda
