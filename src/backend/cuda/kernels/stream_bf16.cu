// Codecs of stream.cuh for bf16 and f16.
#include "backend/cuda/kernels/stream.cuh"

namespace inferno::cuda {
namespace {

// A lane takes eight columns of each block of 32. bf16 inputs are as they are; f16 ones have a factor for
// each block, because f16 has too small a range.
template <bool F16>
struct Codec {
  static constexpr int parts = F16 ? 1 : 4, groups = 1;
  static constexpr bool scaled = F16, sums = false;
  __device__ static void input(std::uint32_t (&b)[8], const std::uint16_t* x, int column, int t) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      uint4 v = make_uint4(0, 0, 0, 0);
      if (column == j) v = *reinterpret_cast<const uint4*>(x + 32 * j + 8 * t);
      b[4 * j] = v.x, b[4 * j + 1] = v.y, b[4 * j + 2] = v.z, b[4 * j + 3] = v.w;
    }
  }
  __device__ static void add(float (&c)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                             std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
    if constexpr (F16) {
      multiply_add_f16(c, a0, a1, a2, a3, b0, b1);
    } else {
      multiply_add(c, a0, a1, a2, a3, b0, b1);
    }
  }
  __device__ static void add_group(float (&c)[4], float (&e)[4], const std::byte* low, const std::byte* high,
                                   int block, int t, const std::uint32_t (&b)[8]) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const uint4 w = *reinterpret_cast<const uint4*>(low + 64 * (block + j) + 16 * t);
      const uint4 v = *reinterpret_cast<const uint4*>(high + 64 * (block + j) + 16 * t);
      add(c, w.x, v.x, w.y, v.y, b[4 * j], b[4 * j + 1]);
      add(e, w.z, v.z, w.w, v.w, b[4 * j + 2], b[4 * j + 3]);
    }
  }
  __device__ static float finish(float2 c, float2 e, const std::byte*, const std::byte*, int, float2 factors,
                                 float2) {
    return (c.x + e.x) * factors.x + (c.y + e.y) * factors.y;
  }
};

constexpr StreamTraits traits(int parts) {
  return {.part_most = 1024,
          .align = 64,
          .parts = parts,
          .most_blocks = 2,
          .stride_rest = 64,
          .piece_bytes = 64,
          .tail_bytes = 0};
}

}  // namespace

const StreamCodec& stream_bf16() {
  static const StreamCodec codec = {traits(4), start_stream<Codec<false>>};
  return codec;
}
const StreamCodec& stream_f16() {
  static const StreamCodec codec = {traits(1), start_stream<Codec<true>>};
  return codec;
}

}  // namespace inferno::cuda
