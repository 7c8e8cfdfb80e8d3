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
  static constexpr int fours = 3, most_chunks = 4 * fours;
  static constexpr int bytes = tiles::chunk_of(WeightFormat::mxfp4).bytes;

  struct Inputs {
    std::uint32_t b[fours][8];
    const float2* factors;  // of the warp's chunks, in shared memory
    __device__ void load(const StreamRoom& room, int chunk, int count, int lane) {
      const int g = lane / 4, t = lane % 4;
      factors = reinterpret_cast<const float2*>(room.factors) + chunk;
#pragma unroll
      for (int four = 0; four < fours; ++four, chunk += 4, count -= 4) {
        uint4 v = make_uint4(0, 0, 0, 0), w = v;
        if (g / 2 < count && g % 2 == t / 2) {
          const auto* x = reinterpret_cast<const uint4*>(room.in + (chunk + g / 2) * 128 + 32 * t);
          v = x[0];
          w = x[1];
        }
        b[four][0] = v.x, b[four][1] = v.y, b[four][2] = v.z, b[four][3] = v.w;
        b[four][4] = w.x, b[four][5] = w.y, b[four][6] = w.z, b[four][7] = w.w;
      }
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

  // Two chunks: lanes t = 0 or 2 have the first one's two blocks, lanes t = 1 or 3 the second one's.
  __device__ static float2 multiply_two(const std::byte* from, const std::uint32_t (&b)[8], bool odd) {
    float c[4] = {}, e[4] = {};
    add(c, e, *reinterpret_cast<const uint2*>(from), *reinterpret_cast<const uint2*>(from + bytes), b);
    return odd ? make_float2(c[2] + e[2], c[3] + e[3]) : make_float2(c[0] + e[0], c[1] + e[1]);
  }

  // Without a branch, so that loads move ahead: chunks that are not there are multiplied by zeros.
  template <int Fours>
  __device__ static float multiply_fours(const std::byte* tile, int chunks, const Inputs& in, int lane) {
    const int g = lane / 4, t = lane % 4;
    float sum = 0.0f;
#pragma unroll
    for (int four = 0; four < Fours; ++four) {
      const std::byte* from = tile + 4 * four * bytes;
      const float2 early = multiply_two(from + 8 * lane, in.b[four], t % 2 != 0);
      const float2 late = multiply_two(from + 2 * bytes + 8 * lane, in.b[four], t % 2 != 0);
      const float2 sums = t < 2 ? early : late;
      const int own = min(4 * four + t, chunks - 1);
      const std::uint32_t both =
          *reinterpret_cast<const std::uint16_t*>(tile + own * bytes + tiles::exponent_mxfp4(g, 0));
      const float2 factors = in.factors[own];
      // Codes were taken for 2^-14 of their values; exponents are 128 at most.
      sum += sums.x * (__uint_as_float(((both & 255u) + 14u) << 23) * factors.x) +
             sums.y * (__uint_as_float(((both >> 8) + 14u) << 23) * factors.y);
    }
    return sum;
  }

  __device__ static float multiply(const std::byte* tile, int chunks, const Inputs& in, int lane) {
    if (chunks > 8) return multiply_fours<3>(tile, chunks, in, lane);
    if (chunks > 4) return multiply_fours<2>(tile, chunks, in, lane);
    return multiply_fours<1>(tile, chunks, in, lane);
  }
};

}  // namespace

const StreamCodec& stream_mxfp4() {
  static const StreamCodec codec = {{WeightFormat::mxfp4, Codec::most_chunks}, start_stream<Codec>};
  return codec;
}

}  // namespace inferno::cuda
