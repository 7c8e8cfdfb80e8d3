// Codec of stream.cuh for mxfp4.
#include "backend/cuda/device/layouts.cuh"
#include "backend/cuda/kernels/stream.cuh"

namespace inferno::cuda {
namespace {

// A lane takes half a block: 16 codes in two words.
struct Codec {
  static constexpr int parts = 1, groups = 4;
  static constexpr bool scaled = true, sums = false;
  __device__ static void input(std::uint32_t (&b)[8], const std::uint16_t* x, int column, int t) {
    half_block_input(b, x, column, t);
  }
  __device__ static void add_group(float (&c)[4], float (&e)[4], const std::byte* low, const std::byte* high,
                                   int block, int t, const std::uint32_t (&b)[8]) {
    const uint2 w = *reinterpret_cast<const uint2*>(low + 16 * block + 8 * t);
    const uint2 v = *reinterpret_cast<const uint2*>(high + 16 * block + 8 * t);
    std::uint32_t a[4], h[4];
    spread_mxfp4_f16(a, w.x);
    spread_mxfp4_f16(h, v.x);
    multiply_add_f16(c, a[0], h[0], a[1], h[1], b[0], b[1]);
    multiply_add_f16(e, a[2], h[2], a[3], h[3], b[2], b[3]);
    spread_mxfp4_f16(a, w.y);
    spread_mxfp4_f16(h, v.y);
    multiply_add_f16(c, a[0], h[0], a[1], h[1], b[4], b[5]);
    multiply_add_f16(e, a[2], h[2], a[3], h[3], b[6], b[7]);
  }
  // Codes were taken for 2^-14 of their values; exponents are 128 at most.
  __device__ static float finish(float2 c, float2 e, const std::byte*, const std::byte* tail, int block,
                                 float2 factors, float2) {
    const std::uint32_t both = *reinterpret_cast<const std::uint16_t*>(tail + block);
    const float first = __uint_as_float(((both & 255u) + 14u) << 23);
    const float second = __uint_as_float(((both >> 8) + 14u) << 23);
    return (c.x + e.x) * (first * factors.x) + (c.y + e.y) * (second * factors.y);
  }
};

}  // namespace

const StreamCodec& stream_mxfp4() {
  static const StreamCodec codec = {{.part_most = 4096,
                                     .align = 512,
                                     .parts = 1,
                                     .most_blocks = 8,
                                     .stride_rest = 32,
                                     .piece_bytes = 16,
                                     .tail_bytes = 1},
                                    start_stream<Codec>};
  return codec;
}

}  // namespace inferno::cuda
