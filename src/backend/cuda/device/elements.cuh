// Activations are float or bf16, known at run time: a uniform branch is free next to the memory access.
#pragma once

#include <cuda_bf16.h>

#include <cstddef>
#include <cstdint>

#include "tensor/matrix.h"

namespace inferno::cuda {

struct Elements {
  std::byte* data = nullptr;
  bool wide = true;  // float if true, otherwise bf16

  __device__ float get(std::int64_t i) const {
    return wide ? reinterpret_cast<const float*>(data)[i]
                : __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(data)[i]);
  }
  // `count` elements, then zeros.
  __device__ void get_run(float (&out)[8], std::int64_t at, int count) const {
    const std::byte* from = data + at * (wide ? 4 : 2);
    if (count < 8 || reinterpret_cast<std::uintptr_t>(from) % 16 != 0) {
#pragma unroll
      for (int i = 0; i < 8; ++i) out[i] = i < count ? get(at + i) : 0.0f;
    } else if (wide) {
      const float4 a = reinterpret_cast<const float4*>(from)[0], b = reinterpret_cast<const float4*>(from)[1];
      out[0] = a.x, out[1] = a.y, out[2] = a.z, out[3] = a.w;
      out[4] = b.x, out[5] = b.y, out[6] = b.z, out[7] = b.w;
    } else {
      const uint4 words = *reinterpret_cast<const uint4*>(from);
      const std::uint32_t pairs[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        out[2 * i] = __uint_as_float(pairs[i] << 16);
        out[2 * i + 1] = __uint_as_float(pairs[i] & 0xFFFF0000u);
      }
    }
  }
  __device__ void put(std::int64_t i, float value) const {
    if (wide) {
      reinterpret_cast<float*>(data)[i] = value;
    } else {
      reinterpret_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16_rn(value);
    }
  }
};

inline Elements elements_of(const Matrix& matrix) {
  return {matrix.data, matrix.dtype == DType::f32};
}
inline const std::int32_t* integers_of(const Matrix& matrix) {
  return reinterpret_cast<const std::int32_t*>(matrix.data);
}
inline const float* floats_of(const Matrix& matrix) {
  return reinterpret_cast<const float*>(matrix.data);
}

}  // namespace inferno::cuda
