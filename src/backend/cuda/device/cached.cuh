// Keys or values in a KV cache of any type: element by element or in runs as floats, and a head on its way
// in.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "backend/cuda/device/scaled.cuh"
#include "tensor/float16.h"
#include "tensor/matrix.h"

namespace inferno::cuda {

// One of the two matrices of a KvLayer.
struct Cached {
  std::byte* data = nullptr;
  DType type = DType::bf16;
  const float* scales = nullptr;  // of an FP8 cache, by key head; null: 1
  std::int64_t row_bytes = 0;
  int head_bytes = 0;

  __device__ std::byte* head(std::int64_t row, int kv_head) const {
    return data + row * row_bytes + std::int64_t{kv_head} * head_bytes;
  }
  __device__ float scale(int kv_head) const {
    return type == DType::f8_e4m3 && scales != nullptr ? __ldg(scales + kv_head) : 1.0f;
  }
};

inline Cached cached(const Matrix& matrix, const Matrix& scales, int head_dim) {
  return {.data = matrix.data,
          .type = matrix.dtype,
          .scales = reinterpret_cast<const float*>(scales.data),
          .row_bytes = static_cast<std::int64_t>(matrix.row_bytes()),
          .head_bytes = static_cast<int>(bytes_for(matrix.dtype, static_cast<std::size_t>(head_dim)))};
}

// E4M3 as float without a table; NaN stays NaN, so that logits show a fault (StoredRun reads it as 480).
__device__ inline float fp8_value(std::uint32_t code) {
  const std::uint32_t magnitude = code & 0x7Fu;
  const float value = __uint_as_float(magnitude << 20 | (code & 0x80u) << 24) * 0x1p120f;
  return magnitude == 0x7Fu ? __uint_as_float(0x7FC00000u) : value;
}

// A head in a cache of one type. Runs begin at multiples of their length, which divides the head.
template <DType Type>
struct CachedHead {
  const std::byte* data;
  float factor;  // Cached::scale()

  static constexpr int element_bytes = Type == DType::f32 ? 4 : Type == DType::f8_e4m3 ? 1 : 2;

  __device__ static float wide(const std::byte* from) {
    if constexpr (Type == DType::f32) return *reinterpret_cast<const float*>(from);
    if constexpr (Type == DType::f16) return __half2float(*reinterpret_cast<const __half*>(from));
    if constexpr (Type == DType::bf16) return __bfloat162float(*reinterpret_cast<const __nv_bfloat16*>(from));
    return fp8_value(static_cast<std::uint32_t>(*from));
  }
  __device__ float get(int i) const {
    float out[1];
    run(out, i);
    return out[0];
  }
  template <int Count>
  __device__ void run(float (&out)[Count], int first) const {
    if constexpr (Type == DType::q8_0) {
      const std::byte* block = data + first / 32 * 34;
      const float scale = __half2float(*reinterpret_cast<const __half*>(block));
      const auto* codes = reinterpret_cast<const std::int8_t*>(block + 2 + first % 32);
      if constexpr (Count % 2 == 0) {  // blocks are aligned to two bytes
#pragma unroll
        for (int i = 0; i < Count; i += 2) {
          const auto pair = *reinterpret_cast<const std::uint16_t*>(codes + i);
          out[i] = scale * static_cast<float>(static_cast<std::int8_t>(pair));
          out[i + 1] = scale * static_cast<float>(static_cast<std::int8_t>(pair >> 8));
        }
      } else {
#pragma unroll
        for (int i = 0; i < Count; ++i) out[i] = scale * static_cast<float>(codes[i]);
      }
    } else {
      constexpr int bytes = Count * element_bytes;
      constexpr int unit = bytes < 16 ? bytes : 16;
      alignas(16) std::byte raw[bytes];
#pragma unroll
      for (int at = 0; at < bytes; at += unit) copy<unit>(raw + at, data + first * element_bytes + at);
#pragma unroll
      for (int i = 0; i < Count; ++i) {
        out[i] = wide(raw + i * element_bytes);
        if constexpr (Type == DType::f8_e4m3) out[i] *= factor;
      }
    }
  }

 private:
  template <int Bytes>
  __device__ static void copy(std::byte* to, const std::byte* from) {
    if constexpr (Bytes == 16) {
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    } else if constexpr (Bytes == 8) {
      *reinterpret_cast<uint2*>(to) = *reinterpret_cast<const uint2*>(from);
    } else if constexpr (Bytes == 4) {
      *reinterpret_cast<std::uint32_t*>(to) = *reinterpret_cast<const std::uint32_t*>(from);
    } else if constexpr (Bytes == 2) {
      *reinterpret_cast<std::uint16_t*>(to) = *reinterpret_cast<const std::uint16_t*>(from);
    } else {
      *to = *from;
    }
  }
};

// use(CachedHead<Type>) of the cache's own type, which is the same for all threads.
template <class Use>
__device__ void with_cached_type(DType type, Use&& use) {
  switch (type) {
    case DType::f32: return use(CachedHead<DType::f32>{});
    case DType::f16: return use(CachedHead<DType::f16>{});
    case DType::q8_0: return use(CachedHead<DType::q8_0>{});
    case DType::f8_e4m3: return use(CachedHead<DType::f8_e4m3>{});
    case DType::bf16:
    case DType::i32: return use(CachedHead<DType::bf16>{});
  }
}

// Elements 32 c + 8 t to 32 c + 8 t + 7 of a head as they are stored, and as bf16; FP8 without its scale,
// which is applied to scores and to results.
template <DType Type>
struct StoredRun {
  uint4 words = {};
  __device__ static StoredRun fetch(const std::byte* head, int c, int t) {
    return {reinterpret_cast<const uint4*>(head)[4 * c + t]};
  }
  __device__ uint4 narrow() const { return words; }
};
template <>
struct StoredRun<DType::f8_e4m3> {
  uint2 words = {};
  __device__ static StoredRun fetch(const std::byte* head, int c, int t) {
    return {reinterpret_cast<const uint2*>(head)[4 * c + t]};
  }
  __device__ static std::uint32_t pair(std::uint32_t word, unsigned selector) {
    return mul_bf16x2(unpack_fp8(__byte_perm(word, 0, selector)), 0x7B807B80u);  // 2^120
  }
  __device__ uint4 narrow() const {
    return {pair(words.x, 0x1404), pair(words.x, 0x3424), pair(words.y, 0x1404), pair(words.y, 0x3424)};
  }
};
template <>
struct StoredRun<DType::q8_0> {
  uint2 words = {};
  float scale = 0.0f;
  // Blocks of 34 bytes: every other one is aligned to two bytes only.
  __device__ static StoredRun fetch(const std::byte* head, int c, int t) {
    const std::byte* block = head + 34 * c;
    const auto* from = reinterpret_cast<const std::uint32_t*>(block + (c % 2 == 0 ? 0 : 2) + 8 * t);
    StoredRun out = {{from[0], from[1]}, __half2float(*reinterpret_cast<const __half*>(block))};
    if (c % 2 == 0) {
      out.words = {__byte_perm(from[0], from[1], 0x5432), __byte_perm(from[1], from[2], 0x5432)};
    }
    return out;
  }
  __device__ uint4 narrow() const {
    uint4 out;
    signed_byte_values(out.x, out.y, words.x, scale);
    signed_byte_values(out.z, out.w, words.y, scale);
    return out;
  }
};

// Stores the elements get(0) to get(head_dim - 1), by one warp. A block of q8_0 with a value that its scale
// cannot express becomes NaN.
template <class Get>
__device__ void store_head(const Cached& cache, std::int64_t row, int kv_head, int head_dim, int lane,
                           const Get& get) {
  std::byte* to = cache.head(row, kv_head);
  const float scale = cache.scale(kv_head);
  for (int first = 0; first < head_dim; first += 32) {
    const int i = first + lane;
    const bool exists = i < head_dim;
    const float x = exists ? get(i) : 0.0f;
    if (cache.type == DType::q8_0) {  // head_dim is a multiple of 32
      constexpr float limit = 65504.0f * 127.0f;
      const bool fits = __all_sync(full_warp, fabsf(x) <= limit);
      const float step = warp_max(fabsf(x)) / 127.0f, inverse = step > 0.0f ? 1.0f / step : 0.0f;
      std::byte* block = to + first / 32 * 34;
      const float code = fits ? fminf(fmaxf(rintf(x * inverse), -127.0f), 127.0f) : 0.0f;
      block[2 + lane] = static_cast<std::byte>(static_cast<std::int8_t>(code));
      if (lane == 0) {
        *reinterpret_cast<std::uint16_t*>(block) = fits ? __half_as_ushort(__float2half_rn(step)) : 0x7E00;
      }
      continue;
    }
    if (!exists) continue;
    if (cache.type == DType::f32) {
      reinterpret_cast<float*>(to)[i] = x;
    } else if (cache.type == DType::f16) {
      reinterpret_cast<__half*>(to)[i] = __float2half_rn(x);
    } else if (cache.type == DType::f8_e4m3) {
      to[i] = static_cast<std::byte>(float_to_f8_e4m3(x / scale));
    } else {
      reinterpret_cast<__nv_bfloat16*>(to)[i] = __float2bfloat16_rn(x);
    }
  }
}

}  // namespace inferno::cuda
