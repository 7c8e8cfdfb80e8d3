// Blocks under one scale (tensor/blocks/scaled.h, Q4_0) in tiles: their words of codes, how those become an
// mma operand, and the reader of single runs. Kernels multiply codes as bf16, for one token as bytes or
// f16, in which they are exact (but for tables), and apply the scale to their sums, in float.
#pragma once

#include "backend/cuda/device/layouts.cuh"
#include "backend/cuda/device/warp.cuh"

namespace inferno::cuda {

enum class Codes { int4, int8, fp8, nvfp4, table };

template <class B>
constexpr Codes codes_of = Codes::table;
template <int count>
constexpr Codes codes_of<blocks::Int4<count>> = Codes::int4;
template <>
constexpr Codes codes_of<blocks::Q4_0> = Codes::int4;
template <int count>
constexpr Codes codes_of<blocks::Int8<count>> = Codes::int8;
template <int count>
constexpr Codes codes_of<blocks::Fp8<count>> = Codes::fp8;
template <int count>
constexpr Codes codes_of<blocks::Nvfp4<count>> = Codes::nvfp4;

// A word of eight four-bit codes: the bit of code i, in the low half if i is even. (NVFP4: pack_mxfp4_code.)
__host__ __device__ constexpr int nibble_shift(int i) {
  return 4 * (i / 2) + 16 * (i % 2);
}
// A word of four E4M3 codes: bytes 1 and 3, then 0 and 2, so that one mask yields a pair of neighbors.
__host__ __device__ constexpr int fp8_shift(int i) {
  return 8 * (i % 2 * 2 + (i < 2 ? 1 : 0));
}

// E4M3 codes at bits 8 to 15 of each half as bf16 pairs of value * 2^-120: a bf16 has four more bits of
// mantissa and its exponent is 120 larger.
__device__ inline std::uint32_t unpack_fp8(std::uint32_t word) {
  return ((word >> 4) & 0x07F007F0u) | (word & 0x80008000u);
}

template <WeightFormat Format, class B>
struct ScaledTile {
  static constexpr WeightFormat format = Format;
  using Stored = B;
  // A function, because device code cannot call members of a constexpr object.
  __host__ __device__ static constexpr tiles::ScaledChunk shape() { return tiles::scaled_chunk_of<B>(); }
  static_assert(tiles::chunk_of(Format).cols == 128 && tiles::chunk_of(Format).bytes == shape().bytes());
  static constexpr Codes codes = codes_of<B>;
  // A lane's columns 8 t to 8 t + 7 of each 32 are a run; a block has whole runs.
  static constexpr int runs = 4, blocks = shape().blocks(), block_runs = runs / blocks;
  __host__ __device__ static constexpr int element(int t, int run) { return 8 * t + 32 * run; }

  struct Fragment {
    uint4 words[shape().has_bytes ? 2 : 1] = {};
    uint2 extra = {};
  };

  template <class Word, bool Global>
  __device__ static Word read(const std::byte* from) {
    if constexpr (Global) return __ldg(reinterpret_cast<const Word*>(from));
    return *reinterpret_cast<const Word*>(from);
  }
  // Zero points of the row's blocks, a byte each; or, in bytes 0 and 2 of each word, NVFP4's scales of a
  // lane's runs.
  template <bool Global = false>
  __device__ static uint2 load_extra(const std::byte* chunk, int g, int t) {
    const std::byte* from = chunk + shape().extra(g, 0);
    if constexpr (codes == Codes::nvfp4) {
      const auto scales = read<uint2, Global>(from);
      const int shift = 8 * (t / 2);
      return make_uint2(scales.x >> shift, scales.y >> shift);
    } else if constexpr (shape().extra_bytes == 0) {
      return {};
    } else if constexpr (blocks == 1) {
      return make_uint2(read<std::uint8_t, Global>(from), 0);
    } else if constexpr (blocks == 2) {
      return make_uint2(read<std::uint16_t, Global>(from), 0);
    } else {
      return make_uint2(read<std::uint32_t, Global>(from), 0);
    }
  }
  // From shared memory.
  __device__ static Fragment load(const std::byte* chunk, int g, int t) {
    Fragment out;
#pragma unroll
    for (int half = 0; half < (shape().has_bytes ? 2 : 1); ++half) {
      out.words[half] = *reinterpret_cast<const uint4*>(chunk + shape().run(g, t + 8 * half));
    }
    out.extra = load_extra(chunk, g, t);
    return out;
  }

  // What a sum of products of unpacked codes has to be multiplied by besides the scale.
  static constexpr float unit = codes == Codes::nvfp4 ? 0x1p26f : 1.0f;
  __device__ static float scale(const std::byte* chunk, int g, int block) {
    const std::byte* from = chunk + shape().scale(g, block);
    if constexpr (shape().scale_bytes == 2) return __half2float(*reinterpret_cast<const __half*>(from));
    return *reinterpret_cast<const float*>(from) * unit;
  }

  // Eight codes as bf16 pairs, in order, as operand of an mma: all lanes of the warp take part.
  __device__ static void unpack(std::uint32_t (&out)[4], const Fragment& fragment, int run) {
    const uint4& w = fragment.words[shape().has_bytes ? run / 2 : 0];
    if constexpr (shape().has_bytes) {
      unpack(out, run % 2 == 0 ? make_uint2(w.x, w.y) : make_uint2(w.z, w.w), fragment.extra, run);
    } else {
      unpack(out, make_uint2(run == 0 ? w.x : run == 1 ? w.y : run == 2 ? w.z : w.w, 0), fragment.extra, run);
    }
  }
  __device__ static void unpack(std::uint32_t (&out)[4], uint2 words, uint2 extra, int run) {
    const std::uint32_t zero = shape().extra_bytes == 0 ? 8u : extra.x >> (8 * (run / block_runs)) & 255u;
    if constexpr (codes == Codes::int4) {  // in the low bits of 128 a code reads as 128 + code
      const std::uint32_t base = (0xC300u | zero) * 0x00010001u;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        out[i] = fma_bf16x2((words.x >> (4 * i) & 0x000F000Fu) | 0x43004300u, 0x3F803F80u, base);
      }
    } else if constexpr (codes == Codes::int8) {  // in the low bits of 2^23
      const float base = 8388608.0f + static_cast<float>(zero);
      const auto value = [&](std::uint32_t word, unsigned i) {
        return __uint_as_float(__byte_perm(word, 0x4B000000u, 0x7540u + i)) - base;
      };
      out[0] = pack_bf16x2(value(words.x, 0), value(words.x, 1));
      out[1] = pack_bf16x2(value(words.x, 2), value(words.x, 3));
      out[2] = pack_bf16x2(value(words.y, 0), value(words.y, 1));
      out[3] = pack_bf16x2(value(words.y, 2), value(words.y, 3));
    } else if constexpr (codes == Codes::fp8) {
      constexpr std::uint32_t up = 0x7B807B80u;  // 2^120
      out[0] = mul_bf16x2(unpack_fp8(words.x), up);
      out[1] = mul_bf16x2(unpack_fp8(words.x << 8), up);
      out[2] = mul_bf16x2(unpack_fp8(words.y), up);
      out[3] = mul_bf16x2(unpack_fp8(words.y << 8), up);
    } else if constexpr (codes == Codes::nvfp4) {
      // 2^-126 times the value, times 2^100 times its scale: six significant bits.
      const std::uint32_t byte = (run < 2 ? extra.x : extra.y) >> (16 * (run % 2)) & 255u;
      const std::uint32_t bits = unpack_fp8(byte << 8 | byte << 24);
      const std::uint32_t scale = mul_bf16x2(mul_bf16x2(bits, 0x7F007F00u), 0x6E006E00u);  // 2^127, 2^93
      unpack_mxfp4_bf16(out, words.x);
#pragma unroll
      for (int i = 0; i < 4; ++i) out[i] = mul_bf16x2(out[i], scale);
    } else {  // lane i has entry i of the table
      const std::uint32_t own = __float_as_uint(Stored::value_of(static_cast<int>(threadIdx.x) % 16));
      const std::uint32_t entry = pack_bf16x2(__uint_as_float(own), 0.0f);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t low = __shfl_sync(full_warp, entry, words.x >> nibble_shift(2 * i) & 15u);
        const std::uint32_t high = __shfl_sync(full_warp, entry, words.x >> nibble_shift(2 * i + 1) & 15u);
        out[i] = low | high << 16;
      }
    }
  }

  // Like the other chunks of layouts.cuh.
  __device__ static void decode(float (&out)[8], const std::byte* chunk, int g, int octet) {
    const float factor = scale(chunk, g, 8 * octet / shape().block);
    const std::byte* from = chunk + shape().run(g, octet);
    if constexpr (codes == Codes::table) {
      const auto word = *reinterpret_cast<const std::uint32_t*>(from);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        out[i] = Stored::value_of(static_cast<int>(word >> nibble_shift(i) & 15u)) * factor;
      }
    } else {
      uint2 words = {};
      if constexpr (shape().has_bytes) {
        words = *reinterpret_cast<const uint2*>(from);
      } else {
        words.x = *reinterpret_cast<const std::uint32_t*>(from);
      }
      std::uint32_t pairs[4];
      unpack(pairs, words, load_extra(chunk, g, octet % 4), octet / 4);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        out[2 * i] = low_of(pairs[i]) * factor;
        out[2 * i + 1] = high_of(pairs[i]) * factor;
      }
    }
  }
};

using TileQ4_0 = ScaledTile<WeightFormat::q4_0, blocks::Q4_0>;
using TileInt4_32 = ScaledTile<WeightFormat::int4_32, blocks::Int4<32>>;
using TileInt4_64 = ScaledTile<WeightFormat::int4_64, blocks::Int4<64>>;
using TileInt4_128 = ScaledTile<WeightFormat::int4_128, blocks::Int4<128>>;
using TileInt8_32 = ScaledTile<WeightFormat::int8_32, blocks::Int8<32>>;
using TileInt8_64 = ScaledTile<WeightFormat::int8_64, blocks::Int8<64>>;
using TileFp8_32 = ScaledTile<WeightFormat::fp8_32, blocks::Fp8<32>>;
using TileFp8_128 = ScaledTile<WeightFormat::fp8_128, blocks::Fp8<128>>;
using TileNvfp4_64 = ScaledTile<WeightFormat::nvfp4_64, blocks::Nvfp4<64>>;
using TileNf4_64 = ScaledTile<WeightFormat::nf4_64, blocks::Nf4<64>>;
using TileFp4_64 = ScaledTile<WeightFormat::fp4_64, blocks::Fp4<64>>;

}  // namespace inferno::cuda
