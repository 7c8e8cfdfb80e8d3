// Codec of stream.cuh for Q4_K, whose blocks of 256 lie as in the file: 16 bytes of scales, 128 of codes.
#include "backend/cuda/kernels/stream.cuh"

namespace inferno::cuda {
namespace {

// A lane takes eight bytes, whose low halves belong to one group of 32 columns and whose high ones to the
// next.
struct Codec {
  static constexpr int parts = 1, groups = 4;
  static constexpr bool scaled = true, sums = true;
  static constexpr int bytes = 144, header = 16;
  // The even and the odd bytes of a word are taken out together.
  __device__ static void input(std::uint32_t (&b)[8], const std::uint16_t* x, int column, int t) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      uint4 v = make_uint4(0, 0, 0, 0);
      if (column == j) v = *reinterpret_cast<const uint4*>(x + 32 * j + 8 * t);
      b[4 * j] = __byte_perm(v.x, v.y, 0x5410u);
      b[4 * j + 1] = __byte_perm(v.x, v.y, 0x7632u);
      b[4 * j + 2] = __byte_perm(v.z, v.w, 0x5410u);
      b[4 * j + 3] = __byte_perm(v.z, v.w, 0x7632u);
    }
  }
  // Four bits at the end of the mantissa of 1024, or four places further up.
  __device__ static std::uint32_t low_codes(std::uint32_t word) {
    return add_f16((word & 0x000F000Fu) | 0x64006400u, 0xE400E400u);
  }
  __device__ static std::uint32_t high_codes(std::uint32_t word) {
    return fused_f16((word & 0x00F000F0u) | 0x64006400u, 0x2C002C00u, 0xD400D400u);  // / 16 - 64
  }
  __device__ static void add_group(float (&c)[4], float (&e)[4], const std::byte* low, const std::byte* high,
                                   int block, int t, const std::uint32_t (&b)[8]) {
    const int at = block / 8 * bytes + header + block % 8 * 16 + 8 * t;
    const uint2 w = *reinterpret_cast<const uint2*>(low + at), v = *reinterpret_cast<const uint2*>(high + at);
    const std::uint32_t w1 = w.x >> 8, v1 = v.x >> 8, w2 = w.y >> 8, v2 = v.y >> 8;
    multiply_add_f16(c, low_codes(w.x), low_codes(v.x), low_codes(w1), low_codes(v1), b[0], b[1]);
    multiply_add_f16(e, low_codes(w.y), low_codes(v.y), low_codes(w2), low_codes(v2), b[2], b[3]);
    multiply_add_f16(c, high_codes(w.x), high_codes(v.x), high_codes(w1), high_codes(v1), b[4], b[5]);
    multiply_add_f16(e, high_codes(w.y), high_codes(v.y), high_codes(w2), high_codes(v2), b[6], b[7]);
  }
  // Small integers as floats, without the slow conversion: behind the mantissa's end of 2^23.
  __device__ static float byte_of(std::uint32_t pair, unsigned selector) {
    return __uint_as_float(__byte_perm(pair, 0x4B000000u, selector)) - 8388608.0f;
  }
  // Steps and offsets of two groups at once: six bits each, in two bytes. KScales::scale and offset.
  __device__ static float finish(float2 c, float2 e, const std::byte* row, const std::byte*, int block,
                                 float2 factors, float2 sums) {
    const uint4 head = *reinterpret_cast<const uint4*>(row + block / 8 * bytes);
    const int shift = block % 4 * 8;
    const std::uint32_t p = head.y >> shift, q = head.z >> shift, r = head.w >> shift;
    const bool early = block % 8 < 4;
    const std::uint32_t steps = early ? p & 0x3F3Fu : (r & 0x0F0Fu) | (p >> 2 & 0x3030u);
    const std::uint32_t offsets = early ? q & 0x3F3Fu : (r >> 4 & 0x0F0Fu) | (q >> 2 & 0x3030u);
    const float2 both = __half22float2(*reinterpret_cast<const __half2*>(&head.x));
    const float products =
        (c.x + e.x) * factors.x * byte_of(steps, 0x7650u) + (c.y + e.y) * factors.y * byte_of(steps, 0x7651u);
    const float over = byte_of(offsets, 0x7650u) * sums.x + byte_of(offsets, 0x7651u) * sums.y;
    return both.x * products - both.y * over;
  }
};

}  // namespace

const StreamCodec& stream_q4_k() {
  static const StreamCodec codec = {{.part_most = 4096,
                                     .align = 256,
                                     .parts = 1,
                                     .most_blocks = 8,
                                     .stride_rest = 32,
                                     .piece_bytes = 18,
                                     .tail_bytes = 0},
                                    start_stream<Codec>};
  return codec;
}

}  // namespace inferno::cuda
