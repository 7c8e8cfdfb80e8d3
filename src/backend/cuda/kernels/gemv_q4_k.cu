// Codecs of gemv.cuh for Q4_K and Q5_K, which differ in a fifth bit.
#include <cuda_fp16.h>

#include "backend/cuda/kernels/gemv.cuh"

namespace inferno::cuda {
namespace {

// The file's blocks: 16 bytes of scales, for Q5_K 32 of fifth bits, then 128 of codes; all of it begins at
// multiples of 16. A lane takes 16 bytes of codes, whose low halves belong to one group of 32 and whose high
// ones to the next.
template <class Block>
struct Codec {
  static constexpr bool has_fifth = sizeof(Block) == sizeof(blocks::Q5_K);
  static constexpr int runs = 4, step = 128, ahead = 2, codes = has_fifth ? 48 : 16;
  struct Fifths {
    uint4 words = {};
  };
  struct None {};
  struct Piece {
    uint4 words = {}, header = {};
    std::conditional_t<has_fifth, Fifths, None> high = {};
  };
  __device__ static int element(int part, int run) {
    return 64 * (part / 2) + 16 * (part % 2) + 8 * (run % 2) + 32 * (run / 2);
  }
  __device__ static Piece load(const std::byte* row, int, int base, int part) {
    const std::byte* block = row + std::int64_t{base / 256} * static_cast<std::int64_t>(sizeof(Block));
    Piece piece = {load_once(block + codes + base % 256 / 2 + 16 * part),
                   __ldg(reinterpret_cast<const uint4*>(block))};
    if constexpr (has_fifth) piece.high.words = __ldg(reinterpret_cast<const uint4*>(block + 16) + part % 2);
    return piece;
  }

  // A group's step and offset: KScales::scale and offset, without indexing memory.
  __device__ static float2 scales(const uint4& header, int group) {
    const int shift = 8 * (group % 4);
    const std::uint32_t a = header.y >> shift, b = header.z >> shift, c = header.w >> shift;
    const std::uint32_t scale = group < 4 ? a & 63u : (c & 15u) | (a >> 2 & 48u);
    const std::uint32_t offset = group < 4 ? b & 63u : (c >> 4 & 15u) | (b >> 2 & 48u);
    const float2 factors = __half22float2(*reinterpret_cast<const __half2*>(&header.x));
    const float step_size = factors.x * static_cast<float>(scale);
    return {step_size, fmaf(-128.0f, step_size, -factors.y * static_cast<float>(offset))};
  }

  __device__ static std::uint32_t word_of(const uint4& words, int run, int half) {
    if (run % 2 == 0) return half == 0 ? words.x : words.y;
    return half == 0 ? words.z : words.w;
  }

  __device__ static void decode(std::uint32_t (&out)[4], const Piece& piece, int base, int part, int run) {
    const int group = base % 256 / 32 + 2 * (part / 2) + run / 2;
    const float2 scale = scales(piece.header, group);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      std::uint32_t bytes = word_of(piece.words, run, half) >> (4 * (run / 2)) & 0x0F0F0F0Fu;
      if constexpr (has_fifth) bytes |= (word_of(piece.high.words, run, half) >> group & 0x01010101u) << 4;
      byte_values(out[2 * half], out[2 * half + 1], bytes, scale.x, scale.y);
    }
  }
};

}  // namespace

void gemv_q4_k(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  start_gemv<Codec<blocks::Q4_K>>(queue, call, mode, count);
}

void gemv_q5_k(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  start_gemv<Codec<blocks::Q5_K>>(queue, call, mode, count);
}

}  // namespace inferno::cuda
