// Products with f16 operands: rows as f16 with a factor, and MXFP4 weights decoded to f16.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backend/cuda/device/layouts.cuh"

namespace inferno::cuda {

// A row as f16 is divided by a power of two that brings its largest value close to the top of f16's range;
// the inverse is exact as well.
__device__ inline float f16_factor(float largest) {
  const int exponent = static_cast<int>(__float_as_uint(largest) >> 23) - 127;
  return largest > 0.0f ? __uint_as_float(static_cast<std::uint32_t>(max(exponent - 14, -126) + 127) << 23)
                        : 1.0f;
}

// Mxfp4Fragments as f16 pairs, with fewer instructions, because half of the codes are in place for f16.
// Weights are exact down to 2^-24, the smallest f16: blocks with scales below 2^-23 lose less than 2^-21 of
// an input.
struct Mxfp4FragmentsF16 : Mxfp4Fragments {
  __device__ static Fragment load(const std::byte* chunk, int g, int t) {
    return {*reinterpret_cast<const uint2*>(chunk + tiles::run_mxfp4(g, 2 * t)),
            scale(*reinterpret_cast<const std::uint8_t*>(chunk + tiles::exponent_mxfp4(g, t / 2)))};
  }
  // 2^14 times the scale, which is at most 2: byte exponents 98 to 128 become f16 exponents 0 to 30.
  __device__ static std::uint32_t scale(std::uint32_t exponent) {
    return (max(exponent, 98u) - 98u) * 0x04000400u;
  }
  __device__ static void decode(std::uint32_t (&out)[4], const Fragment& fragment, int run) {
    unpack_mxfp4_f16(out, run == 0 ? fragment.words.x : fragment.words.y);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(out[i]) : "r"(out[i]), "r"(fragment.scale));
    }
  }
};

}  // namespace inferno::cuda
