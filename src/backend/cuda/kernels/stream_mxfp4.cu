// Codec of stream.cuh for mxfp4.
#include "backend/cuda/device/layouts.cuh"
#include "backend/cuda/kernels/stream.cuh"

namespace inferno::cuda {
namespace {

// A lane takes half a block: 16 codes in two words. Of the other operand's eight columns each belongs to one
// block of 32 and is zero for all others, so that every block has a sum of its own, to which its scale is
// applied once. A warp keeps these inputs in registers. Columns 4 p to 4 p + 3 belong to the blocks of chunks
// 2 p and 2 p + 1; so lane (g, t) finds the blocks of chunk t: as row g where t is even, as row g + 8 where
// it is odd.
struct Codec {
  static constexpr InputForm form = InputForm::f16;
  static constexpr bool whole = false;
  static constexpr int most_chunks = 4, bytes = tiles::chunk_of(WeightFormat::mxfp4).bytes;

  struct Inputs {
    std::uint32_t b[most_chunks / 2][8];
    float2 factors;
    __device__ void load(const StreamRoom& room, int chunk, int count, int lane) {
      const int g = lane / 4, t = lane % 4;
      uint4 v = make_uint4(0, 0, 0, 0), w = v;
      if (g / 2 < count && g % 2 == t / 2) {
        const auto* x = reinterpret_cast<const uint4*>(room.in + (chunk + g / 2) * 128 + 32 * t);
        v = x[0];
        w = x[1];
      }
      const std::uint32_t words[8] = {v.x, v.y, v.z, v.w, w.x, w.y, w.z, w.w};
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        b[0][i] = g < 4 ? words[i] : 0;
        b[1][i] = g < 4 ? 0 : words[i];
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

  __device__ static float multiply(const std::byte* tile, int chunks, const Inputs& in, int lane) {
    const int g = lane / 4, t = lane % 4;
    float c[4] = {}, e[4] = {};
#pragma unroll
    for (int p = 0; p < most_chunks / 2; ++p) {
      if (2 * p >= chunks) break;
      const std::byte* from = tile + 2 * p * bytes + 8 * lane;
      const uint2 w = *reinterpret_cast<const uint2*>(from);
      const uint2 v = 2 * p + 1 < chunks ? *reinterpret_cast<const uint2*>(from + bytes) : make_uint2(0, 0);
      add(c, e, w, v, in.b[p]);
    }
    const std::byte* exponents = tile + min(t, chunks - 1) * bytes + tiles::exponent_mxfp4(g, 0);
    const std::uint32_t both = *reinterpret_cast<const std::uint16_t*>(exponents);
    const float first = t % 2 == 0 ? c[0] + e[0] : c[2] + e[2];
    const float second = t % 2 == 0 ? c[1] + e[1] : c[3] + e[3];
    // Codes were taken for 2^-14 of their values; exponents are 128 at most.
    const float sum = first * (__uint_as_float(((both & 255u) + 14u) << 23) * in.factors.x) +
                      second * (__uint_as_float(((both >> 8) + 14u) << 23) * in.factors.y);
    return t < chunks ? sum : 0.0f;
  }
};

}  // namespace

const StreamCodec& stream_mxfp4() {
  static const StreamCodec codec = {{WeightFormat::mxfp4, Codec::most_chunks}, start_stream<Codec>};
  return codec;
}

}  // namespace inferno::cuda
