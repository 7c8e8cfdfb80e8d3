// Codec of stream.cuh for Q4_K.
#include "backend/cuda/kernels/linear/stream_bytes.cuh"

namespace inferno::cuda {
namespace {

// A lane has 16 bytes of blocks 0 to 3 of a chunk and 16 of blocks 4 to 7: low and high halves of eight
// bytes, then of eight more. Blocks 0, 4, 1 and 5 are multiplied together, then 2, 6, 3 and 7.
struct Codec {
  static constexpr InputForm form = InputForm::bytes_and_sums;
  static constexpr bool whole = false, one_part = false;
  static constexpr int bytes = tiles::chunk_of(WeightFormat::q4_k).bytes, at_once = 1;

  struct Inputs {
    const std::byte* x;           // the block that the lane's column of the operand belongs to
    const float *factors, *sums;  // of the block that its sums belong to
    __device__ void load(const StreamRoom& room, int chunk, int lane) {
      const int g = lane / 4, t = lane % 4;
      x = room.in + 64 * (8 * chunk + 4 * (g / 2 % 2) + g / 4);
      factors = room.factors + 8 * chunk + 4 * (t % 2) + t / 2;
      sums = room.sums + 8 * chunk + 4 * (t % 2) + t / 2;
    }
  };

  __device__ static uint2 halves(std::uint32_t a, std::uint32_t b, int shift) {
    return make_uint2((a >> shift) & 0x0F0F0F0Fu, (b >> shift) & 0x0F0F0F0Fu);
  }
  // Steps and offsets of four blocks, six bits each: of the first four where `late` is false, otherwise of
  // the others. KScales::scale and offset.
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
    // A byte as a float, without the slow conversion: behind the mantissa's end of 2^23.
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
      const float product = four_blocks<true>(
          {{halves(a.x, a.y, 0), halves(b.x, b.y, 0), halves(a.x, a.y, 4), halves(b.x, b.y, 4)}},
          in.x + 64 * block, lane);
      sum += head.finish(product, 2 * i + t / 2, in.factors[block], in.sums[block]);
    }
    return sum;
  }

  template <bool>
  using Sums = TileSums<Codec>;
};

}  // namespace

void stream_q4_k(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  start_stream<Codec>(queue, call, mode, blocks, shared);
}

}  // namespace inferno::cuda
