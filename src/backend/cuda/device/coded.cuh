// What kernels use that multiply codes of one byte, or f16, without a detour through bf16.
#pragma once

#include "backend/cuda/device/ptx.cuh"

namespace inferno::cuda {

// c [16, 8] += a [16, 32] * b [32, 8], of signed bytes in b and of signed or unsigned ones in a. A lane holds
// of a: rows g and g + 8, columns 4t to 4t + 3 (a0, a1) and 16 + 4t to 16 + 4t + 3 (a2, a3).
template <bool Unsigned>
__device__ void mma_int8(std::int32_t (&c)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
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

__device__ inline std::uint32_t pack_f16x2(float low, float high) {
  std::uint32_t out;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  return out;
}
// The two E4M3 codes in the low 16 bits as f16, exactly; NaN stays NaN. Hopper and later.
__device__ inline std::uint32_t f16_of_fp8(std::uint32_t codes) {
  std::uint32_t out = 0;
  if constexpr (has_sm90) {
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(out) : "h"(static_cast<unsigned short>(codes)));
  } else {
    wrong_architecture();
  }
  return out;
}

// A power of two that scales numbers up to `top` close to the top of f16's range, and its inverse: the values
// of a block then keep eleven bits whatever their size.
__device__ inline float2 f16_scale(float top) {
  const int exponent = static_cast<int>(__float_as_uint(top) >> 23 & 255u);
  const int up = min(max(14 + 127 - exponent, -100), 100);
  return {__uint_as_float(static_cast<std::uint32_t>(127 + up) << 23),
          __uint_as_float(static_cast<std::uint32_t>(127 - up) << 23)};
}

}  // namespace inferno::cuda
