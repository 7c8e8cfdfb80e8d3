// Codec of stream.cuh for q8_0.
#include "backend/cuda/kernels/stream.cuh"

namespace inferno::cuda {
namespace {

// A lane takes half a block: 16 codes.
struct Codec {
  static constexpr int parts = 1, groups = 2;
  static constexpr bool scaled = true, sums = false;
  __device__ static void input(std::uint32_t (&b)[8], const std::uint16_t* x, int column, int t) {
    half_block_input(b, x, column, t);
  }
  // A byte at the end of the mantissa of 1024 is 1024 + byte; the byte is 128 more than the code.
  __device__ static void decode(std::uint32_t& first, std::uint32_t& second, std::uint32_t word) {
    const std::uint32_t bytes = word ^ 0x80808080u;
    first = add_f16(__byte_perm(bytes, 0x64646464u, 0x4140u), 0xE480E480u);  // -1152
    second = add_f16(__byte_perm(bytes, 0x64646464u, 0x4342u), 0xE480E480u);
  }
  __device__ static void add_group(float (&c)[4], float (&e)[4], const std::byte* low, const std::byte* high,
                                   int block, int t, const std::uint32_t (&b)[8]) {
    const uint4 w = *reinterpret_cast<const uint4*>(low + 32 * block + 16 * t);
    const uint4 v = *reinterpret_cast<const uint4*>(high + 32 * block + 16 * t);
    const std::uint32_t ws[4] = {w.x, w.y, w.z, w.w}, vs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      std::uint32_t a0, a1, a2, a3;
      decode(a0, a2, ws[i]);
      decode(a1, a3, vs[i]);
      multiply_add_f16(i % 2 == 0 ? c : e, a0, a1, a2, a3, b[2 * i], b[2 * i + 1]);
    }
  }
  __device__ static float finish(float2 c, float2 e, const std::byte*, const std::byte* tail, int block,
                                 float2 factors, float2) {
    const float2 scales = __half22float2(*reinterpret_cast<const __half2*>(tail + 2 * block));
    return (c.x + e.x) * (scales.x * factors.x) + (c.y + e.y) * (scales.y * factors.y);
  }
};

}  // namespace

const StreamCodec& stream_q8_0() {
  static const StreamCodec codec = {{.part_most = 2048,
                                     .align = 512,
                                     .parts = 1,
                                     .most_blocks = 4,
                                     .stride_rest = 64,
                                     .piece_bytes = 32,
                                     .tail_bytes = 2},
                                    start_stream<Codec>};
  return codec;
}

}  // namespace inferno::cuda
