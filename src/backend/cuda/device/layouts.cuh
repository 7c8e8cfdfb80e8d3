// Readers of weights in device memory (layouts: docs/kernels.md). A reader decodes elements k to k + count -
// 1 of a row, where k is a multiple of eight and count at most eight. Row numbers run over all matrices,
// WeightView::rows_between for each.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "backend/cuda/device/ptx.cuh"
#include "backend/cuda/device/tiles.cuh"
#include "tensor/format.h"

namespace inferno::cuda {

// Rows of blocks in the file's layout.
template <Block B>
struct Stored {
  const std::byte* data = nullptr;
  std::int64_t row_bytes = 0;

  // A run of eight elements never crosses a block.
  __device__ void decode(float (&out)[8], std::int64_t row, int k, int count) const {
    const B* blocks = reinterpret_cast<const B*>(data + row * row_bytes);
    if constexpr (B::elements == 1 && sizeof(B) <= 4) {
      const B* from = blocks + k;
      // 16-byte loads for eight elements; one-byte elements need half of one.
      constexpr int words = sizeof(B) / 2;
      if (count == 8 && reinterpret_cast<std::uintptr_t>(from) % (8 * sizeof(B) % 16 == 0 ? 16 : 8) == 0) {
        alignas(16) B run[8];
        if constexpr (words == 0) {
          *reinterpret_cast<uint2*>(run) = *reinterpret_cast<const uint2*>(from);
        } else {
#pragma unroll
          for (int i = 0; i < words; ++i) {
            reinterpret_cast<uint4*>(run)[i] = reinterpret_cast<const uint4*>(from)[i];
          }
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) out[i] = run[i][0];
        return;
      }
    }
    if constexpr (B::elements == 1) {
#pragma unroll
      for (int i = 0; i < 8; ++i) out[i] = i < count ? blocks[k + i][0] : 0.0f;
    } else {
      const B& block = blocks[k / B::elements];
      const int first = k % B::elements;
#pragma unroll
      for (int i = 0; i < 8; ++i) out[i] = block[first + i];
    }
  }
};

// Unpacks a word of eight MXFP4 codes. Each half holds four codes: the signs of codes 0, 2, 3 and 1 at bits
// 15 to 12, then the magnitudes of codes 0 to 3, three bits each. One shift brings a magnitude to the low
// exponent bits and the mantissa of an f16. Result: f16 pairs of value * 2^-14, in order.
__device__ inline void unpack_mxfp4_f16(std::uint32_t (&out)[4], std::uint32_t word) {
  out[0] = word & 0x8E008E00u;
  out[1] = (word << 3) & 0x8E008E00u;
  out[2] = ((word << 6) & 0x0E000E00u) | ((word << 1) & 0x80008000u);
  out[3] = ((word << 9) & 0x0E000E00u) | ((word << 2) & 0x80008000u);
}
// bf16 pairs of value * 2^-126.
__device__ inline void unpack_mxfp4_bf16(std::uint32_t (&out)[4], std::uint32_t word) {
  out[0] = ((word >> 3) & 0x01C001C0u) | (word & 0x80008000u);
  out[1] = (word & 0x01C001C0u) | ((word << 3) & 0x80008000u);
  out[2] = ((word << 3) & 0x01C001C0u) | ((word << 1) & 0x80008000u);
  out[3] = ((word << 6) & 0x01C001C0u) | ((word << 2) & 0x80008000u);
}

// The inverse, for packing: the bits of code number `place` (0 to 7) of a word.
__device__ inline std::uint32_t pack_mxfp4_code(std::uint32_t code, int place) {
  const std::uint32_t magnitude = code & 7u, sign = code >> 3;
  const int pair = place / 2, half = place % 2 * 16;
  const int sign_bit = pair == 0 ? 15 : pair == 1 ? 12 : pair == 2 ? 14 : 13;
  return (magnitude << (9 - 3 * pair) | sign << sign_bit) << half;
}

// 2^126 times the block's scale as a bf16 pair. Exponents up to 128 fit, that is scales up to 2.
__device__ inline std::uint32_t scale_mxfp4(std::uint32_t exponent) {
  const std::uint32_t bits = (exponent + 126u) << 7;
  return bits | bits << 16;
}

// a * b + c of each half, rounded once.
__device__ inline std::uint32_t fma_bf16x2(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t out;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(c));
  return out;
}

// Unlike mul.bf16x2 this keeps subnormal results.
__device__ inline std::uint32_t mul_bf16x2(std::uint32_t a, std::uint32_t b) {
  return fma_bf16x2(a, b, 0x80008000u);  // adding -0 preserves the sign of a zero product
}

// Scale and minimum of a Q4_K group (KScales::scale and offset), without indexing memory.
struct ScaleAndMin {
  float step, offset;
};
__device__ inline ScaleAndMin scales_k(const uint4& head, int group) {
  const int shift = 8 * (group % 4);
  const std::uint32_t a = head.y >> shift, b = head.z >> shift, c = head.w >> shift;
  const std::uint32_t scale = group < 4 ? a & 63u : (c & 15u) | (a >> 2 & 48u);
  const std::uint32_t offset = group < 4 ? b & 63u : (c >> 4 & 15u) | (b >> 2 & 48u);
  const float2 factors = __half22float2(*reinterpret_cast<const __half2*>(&head.x));
  return {factors.x * static_cast<float>(scale), factors.y * static_cast<float>(offset)};
}

// Byte i of a word (below 128) as scale * byte + offset, without a conversion: in the top mantissa bits of
// 128 it reads as 128 + byte. The caller has reduced `offset` by 128 * scale.
__device__ inline float byte_value(std::uint32_t word, unsigned i, float scale, float offset) {
  return fmaf(__uint_as_float(__byte_perm(word, 0x43u, 0x4055u + (i << 8))), scale, offset);
}
__device__ inline void byte_values(std::uint32_t& low, std::uint32_t& high, std::uint32_t word, float scale,
                                   float offset) {
  low = pack_bf16x2(byte_value(word, 0, scale, offset), byte_value(word, 1, scale, offset));
  high = pack_bf16x2(byte_value(word, 2, scale, offset), byte_value(word, 3, scale, offset));
}

// Signed bytes of a word as scale * byte, in bf16 pairs, without a conversion: in the middle of the mantissa
// of 2^15 a byte reads as 2^15 + byte, and with its sign bit flipped as 128 more than the code. The
// multiply-add subtracts the excess.
__device__ inline float signed_byte_value(std::uint32_t word, unsigned i, float scale, float excess) {
  return fmaf(__uint_as_float(__byte_perm(word, 0x47000000u, 0x7404u + (i << 4))), scale, excess);
}
__device__ inline void signed_byte_values(std::uint32_t& low, std::uint32_t& high, std::uint32_t word,
                                          float scale) {
  const std::uint32_t turned = word ^ 0x80808080u;
  const float excess = -(32768.0f + 128.0f) * scale;
  low = pack_bf16x2(signed_byte_value(turned, 0, scale, excess), signed_byte_value(turned, 1, scale, excess));
  high =
      pack_bf16x2(signed_byte_value(turned, 2, scale, excess), signed_byte_value(turned, 3, scale, excess));
}

// Values of one Q4_K or Q5_K group, four codes to a word, as bf16 pairs.
__device__ inline void grouped_byte_values(std::uint32_t (&out)[4], std::uint32_t first, std::uint32_t second,
                                           const ScaleAndMin& scales) {
  const float offset = fmaf(-128.0f, scales.step, -scales.offset);  // see byte_value()
  byte_values(out[0], out[1], first, scales.step, offset);
  byte_values(out[2], out[3], second, scales.step, offset);
}

// Chunks of Layout::tiled: `octet` is the index of a run of eight columns of row g.
template <WeightFormat Format>
struct Chunk16Bit {
  static constexpr WeightFormat format = Format;
  __device__ static void decode(float (&out)[8], const std::byte* chunk, int g, int octet) {
    const uint4 words = *reinterpret_cast<const uint4*>(chunk + tiles::run_16_bit(g, octet));
    const std::uint32_t pairs[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (Format == WeightFormat::bf16) {
        out[2 * i] = low_of(pairs[i]);
        out[2 * i + 1] = high_of(pairs[i]);
      } else {
        const float2 wide = __half22float2(*reinterpret_cast<const __half2*>(&pairs[i]));
        out[2 * i] = wide.x;
        out[2 * i + 1] = wide.y;
      }
    }
  }
};

struct ChunkQ8_0 {
  static constexpr WeightFormat format = WeightFormat::q8_0;
  __device__ static void decode(float (&out)[8], const std::byte* chunk, int g, int octet) {
    const float scale =
        f16_to_float(*reinterpret_cast<const std::uint16_t*>(chunk + tiles::scale_q8_0(g, octet / 4)));
    const uint2 words = *reinterpret_cast<const uint2*>(chunk + tiles::run_q8_0(g, octet));
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const std::uint32_t word = i < 4 ? words.x : words.y;
      out[i] = scale * static_cast<float>(static_cast<std::int8_t>(word >> (8 * (i % 4))));
    }
  }
};

struct ChunkMxfp4 {
  static constexpr WeightFormat format = WeightFormat::mxfp4;
  __device__ static void decode(float (&out)[8], const std::byte* chunk, int g, int octet) {
    std::uint32_t pairs[4];
    unpack_mxfp4_bf16(pairs, *reinterpret_cast<const std::uint32_t*>(chunk + tiles::run_mxfp4(g, octet)));
    const std::uint32_t scale =
        scale_mxfp4(static_cast<std::uint32_t>(chunk[tiles::exponent_mxfp4(g, octet / 4)]));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t pair = mul_bf16x2(pairs[i], scale);
      out[2 * i] = low_of(pair);
      out[2 * i + 1] = high_of(pair);
    }
  }
};

struct ChunkQ4_K {
  static constexpr WeightFormat format = WeightFormat::q4_k;
  __device__ static void decode(float (&out)[8], const std::byte* chunk, int g, int octet) {
    const uint4 head = *reinterpret_cast<const uint4*>(chunk + tiles::head_q4_k(g));
    const uint2 words = *reinterpret_cast<const uint2*>(chunk + tiles::run_q4_k(g, octet));
    const ScaleAndMin scales = scales_k(head, octet / 4);
    const int half = octet / 4 % 2 * 4;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const std::uint32_t code = (i < 4 ? words.x : words.y) >> (8 * (i % 4) + half) & 15u;
      out[i] = scales.step * static_cast<float>(code) - scales.offset;
    }
  }
};

template <class Chunk>
struct Tiled {
  const std::byte* data = nullptr;
  std::int64_t tile_bytes = 0;

  __device__ void decode(float (&out)[8], std::int64_t row, int k, int) const {
    constexpr tiles::Chunk shape = tiles::chunk_of(Chunk::format);
    const std::byte* tile = data + row / tiles::tile_rows * tile_bytes;
    Chunk::decode(out, tile + std::int64_t{k / shape.cols} * shape.bytes,
                  static_cast<int>(row % tiles::tile_rows), k % shape.cols / 8);
  }
};

// Q6_K split by field: the low four bits in the file's order, cols / 2 bytes; the high two bits, cols / 4; a
// scale per 16 columns, cols / 16; a factor per 256.
struct SplitQ6_K {
  int cols = 0;
  const std::byte* data = nullptr;
  std::int64_t row_bytes = 0;

  __device__ const std::byte* high(const std::byte* row) const { return row + cols / 2; }
  __device__ const std::int8_t* scales(const std::byte* row) const {
    return reinterpret_cast<const std::int8_t*>(row + cols / 2 + cols / 4);
  }
  __device__ const std::uint16_t* factors(const std::byte* row) const {
    return reinterpret_cast<const std::uint16_t*>(row + cols / 2 + cols / 4 + cols / 16);
  }
  __device__ void decode(float (&out)[8], std::int64_t number, int k, int) const {
    const std::byte* row = data + number * row_bytes;
    const float scale = f16_to_float(factors(row)[k / 256]) * static_cast<float>(scales(row)[k / 16]);
    const int half = k / 128, first = k % 128;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int at = first + i;
      const int low = static_cast<int>(row[half * 64 + at % 64]) >> (at / 64 * 4) & 15;
      const int top = static_cast<int>(high(row)[half * 32 + at % 32]) >> (at / 32 * 2) & 3;
      out[i] = scale * static_cast<float>((low | top << 4) - 32);
    }
  }
};

// MXFP4 as an mma operand of sixteen rows. A lane reads two neighboring words of row g, half a block under
// one exponent; a run is eight columns, decoded to bf16 pairs.
struct Mxfp4Fragments {
  static constexpr WeightFormat format = WeightFormat::mxfp4;
  static constexpr int runs = 2;
  struct Fragment {
    uint2 words;
    std::uint32_t scale;
  };
  __host__ __device__ static constexpr int element(int t, int run) { return 16 * t + 8 * run; }
  __device__ static Fragment load(const std::byte* chunk, int g, int t) {
    return {*reinterpret_cast<const uint2*>(chunk + tiles::run_mxfp4(g, 2 * t)),
            scale_mxfp4(*reinterpret_cast<const std::uint8_t*>(chunk + tiles::exponent_mxfp4(g, t / 2)))};
  }
  __device__ static void decode(std::uint32_t (&out)[4], const Fragment& fragment, int run) {
    unpack_mxfp4_bf16(out, run == 0 ? fragment.words.x : fragment.words.y);
#pragma unroll
    for (int i = 0; i < 4; ++i) out[i] = mul_bf16x2(out[i], fragment.scale);
  }
};

}  // namespace inferno::cuda
