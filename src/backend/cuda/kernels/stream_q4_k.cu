// Codec of stream.cuh for Q4_K.
#include "backend/cuda/kernels/stream_bytes.cuh"

namespace inferno::cuda {
namespace {

// A chunk's eight blocks come in two fours. A lane's 16 bytes are eight columns of each of four blocks: low
// and high halves of eight bytes, then of eight more.
struct Codec {
  static constexpr InputForm form = InputForm::bytes_and_sums;
  static constexpr bool whole = false;
  static constexpr int bytes = tiles::chunk_of(WeightFormat::q4_k).bytes;

  struct Inputs : ByteInputs {
    __device__ void load(const StreamRoom& room, int chunk, int, int lane) {
      ByteInputs::load(room, 8 * chunk, lane);
    }
  };

  __device__ static void add_two(ByteSums& c, uint2 w, uint2 v, const Inputs& in, int block) {
    constexpr std::uint32_t half = 0x0F0F0F0Fu;
    multiply_add_bytes<true>(c, w.x & half, v.x & half, w.y & half, v.y & half, in.of(block));
    multiply_add_bytes<true>(c, (w.x >> 4) & half, (v.x >> 4) & half, (w.y >> 4) & half, (v.y >> 4) & half,
                             in.of(block + 1));
  }

  // Small integers as floats, without the slow conversion: behind the mantissa's end of 2^23.
  __device__ static float small(std::uint32_t value) {
    return __uint_as_float(value | 0x4B000000u) - 8388608.0f;
  }
  // Step and offset of block 4 four + t: six bits each. KScales::scale and offset.
  __device__ static float finish(std::int32_t high, std::int32_t low, uint4 head, int four, int t,
                                 float factor, float sum) {
    const std::uint32_t p = head.y >> (8 * t), q = head.z >> (8 * t), r = head.w >> (8 * t);
    const std::uint32_t step = four == 0 ? p & 63u : (r & 15u) | (p >> 2 & 0x30u);
    const std::uint32_t offset = four == 0 ? q & 63u : (r >> 4 & 15u) | (q >> 2 & 0x30u);
    const float2 both = __half22float2(*reinterpret_cast<const __half2*>(&head.x));
    return both.x * small(step) * (joined(high, low) * factor) - both.y * small(offset) * sum;
  }

  __device__ static float2 multiply(const std::byte* low, const std::byte* high, int chunks, const Inputs& in,
                                    int lane) {
    const int t = lane % 4, at = tiles::head_q4_k(lane / 4);
    float2 sums = {0.0f, 0.0f};
    for (int chunk = 0; chunk < chunks; ++chunk, low += bytes, high += bytes) {
      const uint4 head = *reinterpret_cast<const uint4*>(low + at);
      const uint4 head_high = *reinterpret_cast<const uint4*>(high + at);
#pragma unroll
      for (int four = 0; four < 2; ++four) {
        const uint4 w = *reinterpret_cast<const uint4*>(low + 128 + 512 * four + 16 * lane);
        const uint4 v = *reinterpret_cast<const uint4*>(high + 128 + 512 * four + 16 * lane);
        const int block = 8 * chunk + 4 * four;
        ByteSums c = {};
        add_two(c, make_uint2(w.x, w.y), make_uint2(v.x, v.y), in, block);
        add_two(c, make_uint2(w.z, w.w), make_uint2(v.z, v.w), in, block + 2);
        const float factor = in.factors[block], sum = in.sums[block];
        sums.x += finish(c[0], c[1], head, four, t, factor, sum);
        sums.y += finish(c[2], c[3], head_high, four, t, factor, sum);
      }
    }
    return sums;
  }
};

}  // namespace

const StreamCodec& stream_q4_k() {
  static const StreamCodec codec = {{WeightFormat::q4_k, 16}, start_stream<Codec>};
  return codec;
}

}  // namespace inferno::cuda
