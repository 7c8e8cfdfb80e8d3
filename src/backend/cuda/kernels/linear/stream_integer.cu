// Codecs of stream_kernel.cuh for Q8_0 and Q4_K: integer mma of bytes.
#include "backend/cuda/kernels/linear/stream_bytes.cuh"

namespace inferno::cuda {
namespace {

// Codec::Sums of codecs that multiply the two tiles one after the other, chunk by chunk.
template <class Codec>
struct TileSums {
  struct Inputs {
    typename Codec::Inputs first, second;
    __device__ void load(const StreamSmem& smem, int a, int b, int, int lane) {
      first.load(smem, a, lane);
      second.load(smem, b, lane);
    }
  };
  float2 sums = {};
  __device__ float2 rows(int) const { return sums; }
  __device__ void add(const StreamSlice& slice, const Inputs& in, int lane) {
#pragma unroll 1
    for (int chunk = 0; chunk < slice.chunks; chunk += Codec::at_once) {
      const bool all = chunk + Codec::at_once <= slice.chunks;
      sums.x += Codec::multiply(slice.data, chunk, all, in.first, lane);
      sums.y += Codec::multiply(slice.data + slice.to_second, chunk, all, in.second, lane);
    }
  }
};

// A lane's 16 bytes are eight columns of each of a chunk's two blocks. The first blocks of two chunks make
// one product, the second blocks the other.
struct CodecQ8_0 {
  static constexpr InputForm form = InputForm::bytes;
  static constexpr bool whole = false, one_part = false;
  static constexpr int bytes = tiles::chunk_of(WeightFormat::q8_0).bytes, at_once = 2;

  struct Inputs {
    const std::byte* x;    // the block that the lane's column of operand b belongs to
    const float* factors;  // factors of the block that the lane's sums belong to
    __device__ void load(const StreamSmem& smem, int chunk, int lane) {
      const int g = lane / 4, t = lane % 4;
      x = smem.in + 64 * (2 * chunk + 2 * (g / 2 % 2) + g / 4);
      factors = smem.factors + 2 * chunk + 2 * (t % 2) + t / 2;
    }
  };

  // `two`: the second chunk exists.
  __device__ static float multiply(const std::byte* tile, int chunk, bool two, const Inputs& in, int lane) {
    const int g = lane / 4, t = lane % 4;
    const std::byte* from = tile + chunk * bytes + 16 * lane;
    const uint4 w = *reinterpret_cast<const uint4*>(from);
    const uint4 v = two ? *reinterpret_cast<const uint4*>(from + bytes) : make_uint4(0, 0, 0, 0);
    const float product = mma_four_blocks<false>({{{w.x, w.y}, {v.x, v.y}, {w.z, w.w}, {v.z, v.w}}},
                                                 {in.x + 128 * chunk, lane}, lane);
    if (!two && t % 2 != 0) return 0.0f;
    const std::byte* scale = tile + (chunk + t % 2) * bytes + tiles::scale_q8_0(g, t / 2);
    return product * (in.factors[2 * chunk] * __half2float(*reinterpret_cast<const __half*>(scale)));
  }

  template <bool>
  using Sums = TileSums<CodecQ8_0>;
};

// A lane has 16 bytes of blocks 0 to 3 of a chunk and 16 of blocks 4 to 7: the nibbles of eight bytes, then
// of eight more. Blocks 0, 4, 1 and 5 are multiplied together, then 2, 6, 3 and 7.
struct CodecQ4_K {
  static constexpr InputForm form = InputForm::bytes_and_sums;
  static constexpr bool whole = false, one_part = false;
  static constexpr int bytes = tiles::chunk_of(WeightFormat::q4_k).bytes, at_once = 1;

  struct Inputs {
    const std::byte* x;           // the block that the lane's column of operand b belongs to
    const float *factors, *sums;  // of the block that the lane's sums belong to
    __device__ void load(const StreamSmem& smem, int chunk, int lane) {
      const int g = lane / 4, t = lane % 4;
      x = smem.in + 64 * (8 * chunk + 4 * (g / 2 % 2) + g / 4);
      factors = smem.factors + 8 * chunk + 4 * (t % 2) + t / 2;
      sums = smem.sums + 8 * chunk + 4 * (t % 2) + t / 2;
    }
  };

  __device__ static uint2 halves(std::uint32_t a, std::uint32_t b, int shift) {
    return make_uint2((a >> shift) & 0x0F0F0F0Fu, (b >> shift) & 0x0F0F0F0Fu);
  }
  // Scales and minimums of four blocks, six bits each: the last four if `late`, otherwise the first
  // (KScales::scale and offset).
  struct Head {
    float2 both;
    std::uint32_t steps, offsets;
    __device__ Head(uint4 words, bool late)
        : both(__half22float2(__half2(__half2_raw{static_cast<unsigned short>(words.x & 0xFFFFu),
                                                  static_cast<unsigned short>(words.x >> 16)}))) {
      const std::uint32_t low = late ? words.w & 0x0F0F0F0Fu : words.y & 0x3F3F3F3Fu;
      const std::uint32_t high = late ? words.w >> 4 & 0x0F0F0F0Fu : words.z & 0x3F3F3F3Fu;
      steps = low | (late ? words.y >> 2 & 0x30303030u : 0u);
      offsets = high | (late ? words.z >> 2 & 0x30303030u : 0u);
    }
    // A byte as a float without a conversion: in the low mantissa bits of 2^23.
    __device__ static float byte(std::uint32_t word, int i) {
      return __uint_as_float(__byte_perm(word, 0x4B000000u, 0x7540u + static_cast<unsigned>(i))) - 8388608.0f;
    }
    __device__ float finish(float product, int block, float factor, float sum) const {
      return both.x * byte(steps, block) * (product * factor) - both.y * byte(offsets, block) * sum;
    }
  };

  __device__ static float multiply(const std::byte* tile, int chunk, bool, const Inputs& in, int lane) {
    const std::byte* from = tile + chunk * bytes;
    const int t = lane % 4;
    const Head head(*reinterpret_cast<const uint4*>(from + tiles::head_q4_k(lane / 4)), t % 2 != 0);
    const uint4 w = *reinterpret_cast<const uint4*>(from + 128 + 16 * lane);
    const uint4 v = *reinterpret_cast<const uint4*>(from + 640 + 16 * lane);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint2 a = i == 0 ? make_uint2(w.x, w.y) : make_uint2(w.z, w.w);
      const uint2 b = i == 0 ? make_uint2(v.x, v.y) : make_uint2(v.z, v.w);
      const int block = 8 * chunk + 2 * i;
      const float product = mma_four_blocks<true>(
          {{halves(a.x, a.y, 0), halves(b.x, b.y, 0), halves(a.x, a.y, 4), halves(b.x, b.y, 4)}},
          {in.x + 64 * block, lane}, lane);
      sum += head.finish(product, 2 * i + t / 2, in.factors[block], in.sums[block]);
    }
    return sum;
  }

  template <bool>
  using Sums = TileSums<CodecQ4_K>;
};

}  // namespace

void stream_q8_0(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  launch_stream<CodecQ8_0>(queue, call, mode, blocks, shared);
}

void stream_q4_k(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  launch_stream<CodecQ4_K>(queue, call, mode, blocks, shared);
}

}  // namespace inferno::cuda
