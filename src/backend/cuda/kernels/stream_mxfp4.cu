// Codec of stream.cuh for mxfp4.
#include "backend/cuda/device/layouts.cuh"
#include "backend/cuda/kernels/stream.cuh"

namespace inferno::cuda {
namespace {

// A lane takes half a block: 16 codes in two words. Of the other operand's eight columns each belongs to one
// block of 32 and is zero for all others, so that every block has a sum of its own, to which its scale is
// applied once. A warp keeps these inputs in registers.
struct Codec {
  static constexpr InputForm form = InputForm::f16;
  static constexpr bool whole = false;
  static constexpr int most_chunks = 4, bytes = tiles::chunk_of(WeightFormat::mxfp4).bytes;

  struct Inputs {
    std::uint32_t b[most_chunks][8];
    float2 factors;  // of blocks 2t and 2t + 1, as the sums of products lie in lanes
    __device__ void load(const StreamRoom& room, int chunk, int count, int lane) {
      const int g = lane / 4, t = lane % 4;
#pragma unroll
      for (int i = 0; i < most_chunks; ++i) {
        uint4 v = make_uint4(0, 0, 0, 0), w = v;
        if (i < count && g == 2 * i + t / 2) {
          const auto* x = reinterpret_cast<const uint4*>(room.in + (chunk + i) * 128 + 32 * t);
          v = x[0];
          w = x[1];
        }
        b[i][0] = v.x, b[i][1] = v.y, b[i][2] = v.z, b[i][3] = v.w;
        b[i][4] = w.x, b[i][5] = w.y, b[i][6] = w.z, b[i][7] = w.w;
      }
      const int own = chunk + min(t, count - 1);
      factors = {room.factors[2 * own], room.factors[2 * own + 1]};
    }
  };

  __device__ static void add(float (&c)[4], float (&e)[4], uint2 w, uint2 v, const std::uint32_t (&b)[8]) {
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
  __device__ static float scaled(float first, float second, const std::byte* exponents, float2 factors) {
    const std::uint32_t both = *reinterpret_cast<const std::uint16_t*>(exponents);
    return first * (__uint_as_float(((both & 255u) + 14u) << 23) * factors.x) +
           second * (__uint_as_float(((both >> 8) + 14u) << 23) * factors.y);
  }

  __device__ static float2 multiply(const std::byte* low, const std::byte* high, int chunks, const Inputs& in,
                                    int lane) {
    float c[4] = {}, e[4] = {};
#pragma unroll
    for (int i = 0; i < most_chunks; ++i) {
      if (i >= chunks) break;
      add(c, e, *reinterpret_cast<const uint2*>(low + i * bytes + 8 * lane),
          *reinterpret_cast<const uint2*>(high + i * bytes + 8 * lane), in.b[i]);
    }
    const int at = min(lane % 4, chunks - 1) * bytes + tiles::exponent_mxfp4(lane / 4, 0);
    return {scaled(c[0] + e[0], c[1] + e[1], low + at, in.factors),
            scaled(c[2] + e[2], c[3] + e[3], high + at, in.factors)};
  }
};

}  // namespace

const StreamCodec& stream_mxfp4() {
  static const StreamCodec codec = {{WeightFormat::mxfp4, Codec::most_chunks}, start_stream<Codec>};
  return codec;
}

}  // namespace inferno::cuda
