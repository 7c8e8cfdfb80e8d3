// Codecs of stream_kernel.cuh for MXFP4.
#include <type_traits>

#include "backend/cuda/device/layouts.cuh"
#include "backend/cuda/kernels/linear/stream_kernel.cuh"

namespace inferno::cuda {
namespace {

// A lane takes half a block: 16 codes in two words. Each of the eight columns of operand b belongs to one
// block of a few chunks. A chunk is multiplied by all eight, and the lanes whose columns belong to its blocks
// keep their sums: every block gets its own sum, to which its scale is applied once. `Each`: chunks per warp;
// missing chunks are multiplied by zeros.
__device__ inline float4 multiply_codes(uint2 w, uint2 v, const uint4 (&x)[2]) {
  std::uint32_t a[4], h[4];
  float c[4] = {};
  unpack_mxfp4_f16(a, w.x);
  unpack_mxfp4_f16(h, v.x);
  mma_f16(c, a[0], h[0], a[1], h[1], x[0].x, x[0].y);
  mma_f16(c, a[2], h[2], a[3], h[3], x[0].z, x[0].w);
  unpack_mxfp4_f16(a, w.y);
  unpack_mxfp4_f16(h, v.y);
  mma_f16(c, a[0], h[0], a[1], h[1], x[1].x, x[1].y);
  mma_f16(c, a[2], h[2], a[3], h[3], x[1].z, x[1].w);
  return make_float4(c[0], c[1], c[2], c[3]);
}
// Codes were decoded as 2^-14 of their values; exponents are at most 128.
__device__ inline float scaled(float first, float second, const std::byte* exponents, float2 factors) {
  const std::uint32_t both = *reinterpret_cast<const std::uint16_t*>(exponents);
  return first * (__uint_as_float(((both & 255u) + 14u) << 23) * factors.x) +
         second * (__uint_as_float(((both >> 8) + 14u) << 23) * factors.y);
}

constexpr int bytes = tiles::chunk_of(WeightFormat::mxfp4).bytes;

// A stage ends after its last chunk, and a copy may be writing what follows: missing chunks read the last
// one.
template <int Each, bool Full>
struct CodeFragments {
  uint2 first[Each], second[Each];
  __device__ CodeFragments(const StreamSlice& slice, int lane) {
    const std::byte* from = slice.data + 8 * lane;
#pragma unroll
    for (int i = 0; i < Each; ++i) {
      const int at = (Full ? i : min(i, slice.chunks - 1)) * bytes;
      first[i] = *reinterpret_cast<const uint2*>(from + at);
      second[i] = *reinterpret_cast<const uint2*>(from + slice.to_second + at);
    }
  }
};

__device__ inline void load_columns(uint4 (&x)[2], const StreamSmem& smem, bool mine, int chunk, int t) {
  const auto* from = reinterpret_cast<const uint4*>(mine ? smem.in + chunk * 128 + 32 * t : smem.zeros);
  x[0] = from[0];
  x[1] = from[1];
}
__device__ inline float2 factors_of(const StreamSmem& smem, int chunk, bool exists) {
  return exists ? reinterpret_cast<const float2*>(smem.factors)[chunk] : make_float2(0.0f, 0.0f);
}

// Two tiles, one input: the eight columns are the blocks of four chunks; lane (g, t) keeps those of chunk t.
template <int Each, bool Full>
struct PairSums {
  struct Inputs {
    uint4 x[2];
    float2 factors;  // of the lane's blocks
    __device__ void load(const StreamSmem& smem, int chunk, int, int chunks, int lane) {
      const int g = lane / 4, t = lane % 4;
      load_columns(x, smem, g / 2 < chunks && g % 2 == t / 2, chunk + g / 2, t);
      factors = factors_of(smem, chunk + t, t < chunks);
    }
  };
  float2 sums = {};
  __device__ float2 rows(int) const { return sums; }
  __device__ void add(const StreamSlice& slice, const Inputs& in, int lane) {
    const CodeFragments<Each, Full> codes(slice, lane);
    const int t = lane % 4;
    float4 own = {};
#pragma unroll
    for (int i = 0; i < Each; ++i) {
      const float4 product = multiply_codes(codes.first[i], codes.second[i], in.x);
      if (t == i) own = product;
    }
    const std::byte* exponents =
        slice.data + min(t, slice.chunks - 1) * bytes + tiles::exponent_mxfp4(lane / 4, 0);
    sums.x += scaled(own.x, own.y, exponents, in.factors);
    sums.y += scaled(own.z, own.w, exponents + slice.to_second, in.factors);
  }
};

// Two tiles, an input each: columns 0 to 3 are the blocks of two chunks of the first input, columns 4 to 7
// those of the second. Lane (g, t) keeps those of one of the two chunks: of the first tile if t < 2.
template <int Each, bool Full>
struct ExpertSums {
  static constexpr int twos = (Each + 1) / 2;
  struct Inputs {
    uint4 x[twos][2];
    float2 factors[twos];
    __device__ void load(const StreamSmem& smem, int a, int b, int chunks, int lane) {
      const int g = lane / 4, t = lane % 4;
#pragma unroll
      for (int i = 0; i < twos; ++i) {
        const int column = 2 * i + g % 4 / 2, own = 2 * i + t % 2;
        load_columns(x[i], smem, column < chunks && g % 2 == t / 2, (g < 4 ? a : b) + column, t);
        factors[i] = factors_of(smem, (t < 2 ? a : b) + own, own < chunks);
      }
    }
  };
  float sum = 0.0f;
  __device__ float2 rows(int lane) const {
    return lane % 4 < 2 ? make_float2(sum, 0.0f) : make_float2(0.0f, sum);
  }
  __device__ void add(const StreamSlice& slice, const Inputs& in, int lane) {
    const CodeFragments<Each, Full> codes(slice, lane);
    const int t = lane % 4;
    const std::byte* exponents =
        slice.data + (t < 2 ? 0 : slice.to_second) + tiles::exponent_mxfp4(lane / 4, 0);
#pragma unroll
    for (int i = 0; i < twos; ++i) {
      float2 own = {};
#pragma unroll
      for (int k = 2 * i; k < Each && k < 2 * i + 2; ++k) {
        const float4 product = multiply_codes(codes.first[k], codes.second[k], in.x[i]);
        if (t % 2 == k % 2)
          own = t < 2 ? make_float2(product.x, product.y) : make_float2(product.z, product.w);
      }
      sum += scaled(own.x, own.y, exponents + min(2 * i + t % 2, slice.chunks - 1) * bytes, in.factors[i]);
    }
  }
};

// Full: every warp has exactly `Each` chunks of the only part.
template <int Each, bool Full>
struct Codec {
  static constexpr InputForm form = InputForm::f16;
  static constexpr bool whole = false, one_part = Full;
  template <bool experts>
  using Sums = std::conditional_t<experts, ExpertSums<Each, Full>, PairSums<Each, Full>>;
};

bool has_specialization(const StreamShape& shape) {  // 2,880 columns
  return shape.parts == 1 && shape.each == 3 && shape.chunks == 3 * stream_warps;
}

}  // namespace

void stream_mxfp4(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  const auto start =
      has_specialization(call.shape) ? launch_stream<Codec<3, true>> : launch_stream<Codec<4, false>>;
  start(queue, call, mode, blocks, shared);
}

}  // namespace inferno::cuda
