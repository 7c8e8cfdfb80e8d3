// Codec of stream.cuh for mxfp4.
#include "backend/cuda/device/layouts.cuh"
#include "backend/cuda/kernels/stream.cuh"

namespace inferno::cuda {
namespace {

// A lane takes half a block: 16 codes in two words. Of the other operand's eight columns each belongs to one
// of the eight blocks of four chunks and is zero for the other block of its chunk, so that every block has a
// sum of its own, to which its scale is applied once. Chunks are multiplied two by two: lane (g, t) finds the
// blocks of chunk t in the product of its two, as row g where t is even, as row g + 8 where it is odd. All
// other sums are of no use.
struct Codec {
  static constexpr InputForm form = InputForm::f16;
  static constexpr bool whole = false;
  static constexpr int bytes = tiles::chunk_of(WeightFormat::mxfp4).bytes;

  struct Inputs {
    const std::byte *x, *zeros;  // the lane's 16 columns of the first four chunks
    const float2* factors;       // of chunks
    __device__ void load(const StreamRoom& room, int chunk, int, int lane) {
      const int g = lane / 4, t = lane % 4;
      zeros = room.zeros;
      x = g % 2 == t / 2 ? room.in + (chunk + g / 2) * 128 + 32 * t : nullptr;
      factors = reinterpret_cast<const float2*>(room.factors) + chunk;
    }
  };

  __device__ static void add(float (&c)[4], float (&e)[4], uint2 w, uint2 v, uint4 x, uint4 y) {
    std::uint32_t a[4], h[4];
    spread_mxfp4_f16(a, w.x);
    spread_mxfp4_f16(h, v.x);
    multiply_add_f16(c, a[0], h[0], a[1], h[1], x.x, x.y);
    multiply_add_f16(e, a[2], h[2], a[3], h[3], x.z, x.w);
    spread_mxfp4_f16(a, w.y);
    spread_mxfp4_f16(h, v.y);
    multiply_add_f16(c, a[0], h[0], a[1], h[1], y.x, y.y);
    multiply_add_f16(e, a[2], h[2], a[3], h[3], y.z, y.w);
  }

  // Two chunks: lanes t = 0 or 2 have the first one's two blocks, lanes t = 1 or 3 the second one's.
  __device__ static float2 multiply_two(const std::byte* from, uint4 x, uint4 y, bool odd) {
    float c[4] = {}, e[4] = {};
    add(c, e, *reinterpret_cast<const uint2*>(from), *reinterpret_cast<const uint2*>(from + bytes), x, y);
    return odd ? make_float2(c[2] + e[2], c[3] + e[3]) : make_float2(c[0] + e[0], c[1] + e[1]);
  }

  // Four by four. Chunks that are not there are multiplied by zeros.
  __device__ static float multiply(const std::byte* tile, int chunks, const Inputs& in, int lane) {
    const int g = lane / 4, t = lane % 4;
    float sum = 0.0f;
#pragma unroll 1
    for (int first = 0; first < chunks; first += 4) {
      const bool mine = in.x != nullptr && first + g / 2 < chunks;
      const auto* x = reinterpret_cast<const uint4*>(mine ? in.x + 128 * first : in.zeros);
      const std::byte* from = tile + first * bytes;
      const float2 early = multiply_two(from + 8 * lane, x[0], x[1], t % 2 != 0);
      const float2 late = multiply_two(from + 2 * bytes + 8 * lane, x[0], x[1], t % 2 != 0);
      const float2 sums = t < 2 ? early : late;
      const int own = min(first + t, chunks - 1);
      const float2 factors = in.factors[own];
      const std::uint32_t both =
          *reinterpret_cast<const std::uint16_t*>(tile + own * bytes + tiles::exponent_mxfp4(g, 0));
      // Codes were taken for 2^-14 of their values; exponents are 128 at most.
      sum += sums.x * (__uint_as_float(((both & 255u) + 14u) << 23) * factors.x) +
             sums.y * (__uint_as_float(((both >> 8) + 14u) << 23) * factors.y);
    }
    return sum;
  }
};

}  // namespace

void stream_mxfp4(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  start_stream<Codec>(queue, call, mode, blocks, shared);
}

}  // namespace inferno::cuda
