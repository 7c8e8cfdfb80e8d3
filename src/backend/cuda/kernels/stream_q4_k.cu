// Codec of stream.cuh for Q4_K.
#include "backend/cuda/kernels/stream_bytes.cuh"

namespace inferno::cuda {
namespace {

// A lane has 16 bytes of blocks 0 to 3 of a chunk and 16 of blocks 4 to 7: low and high halves of eight
// bytes, then of eight more. Blocks 0, 4, 1 and 5 are multiplied together, then 2, 6, 3 and 7.
struct Codec {
  static constexpr InputForm form = InputForm::bytes_and_sums;
  static constexpr bool whole = false;
  static constexpr int bytes = tiles::chunk_of(WeightFormat::q4_k).bytes;

  struct Inputs {
    const std::byte* x;           // the block that the lane's column of the operand belongs to
    const float *factors, *sums;  // of the block that its sums belong to
    __device__ void load(const StreamRoom& room, int chunk, int, int lane) {
      const int g = lane / 4, t = lane % 4;
      x = room.in + 64 * (8 * chunk + 4 * (g / 2 % 2) + g / 4);
      factors = room.factors + 8 * chunk + 4 * (t % 2) + t / 2;
      sums = room.sums + 8 * chunk + 4 * (t % 2) + t / 2;
    }
  };

  __device__ static uint2 halves(std::uint32_t a, std::uint32_t b, int shift) {
    return make_uint2((a >> shift) & 0x0F0F0F0Fu, (b >> shift) & 0x0F0F0F0Fu);
  }
  // Small integers as floats, without the slow conversion: behind the mantissa's end of 2^23.
  __device__ static float small(std::uint32_t value) {
    return __uint_as_float(value | 0x4B000000u) - 8388608.0f;
  }
  // Step and offset of a block: six bits each. KScales::scale and offset. `late`: of blocks 4 to 7.
  __device__ static float finish(float product, uint4 head, int shift, bool late, float factor, float sum) {
    const std::uint32_t p = head.y >> shift, q = head.z >> shift, r = head.w >> shift;
    const std::uint32_t step = late ? (r & 15u) | (p >> 2 & 0x30u) : p & 63u;
    const std::uint32_t offset = late ? (r >> 4 & 15u) | (q >> 2 & 0x30u) : q & 63u;
    const float2 both = __half22float2(*reinterpret_cast<const __half2*>(&head.x));
    return both.x * small(step) * (product * factor) - both.y * small(offset) * sum;
  }

  __device__ static float multiply(const std::byte* tile, int chunks, const Inputs& in, int lane) {
    const int t = lane % 4;
    float sum = 0.0f;
#pragma unroll 2
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const std::byte* from = tile + chunk * bytes;
      const uint4 head = *reinterpret_cast<const uint4*>(from + tiles::head_q4_k(lane / 4));
      const uint4 w = *reinterpret_cast<const uint4*>(from + 128 + 16 * lane);
      const uint4 v = *reinterpret_cast<const uint4*>(from + 640 + 16 * lane);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const uint2 a = i == 0 ? make_uint2(w.x, w.y) : make_uint2(w.z, w.w);
        const uint2 b = i == 0 ? make_uint2(v.x, v.y) : make_uint2(v.z, v.w);
        const int block = 8 * chunk + 2 * i;
        const float product = four_blocks<true>(
            {{halves(a.x, a.y, 0), halves(b.x, b.y, 0), halves(a.x, a.y, 4), halves(b.x, b.y, 4)}},
            in.x + 64 * block, lane);
        sum += finish(product, head, 8 * (2 * i + t / 2), t % 2 != 0, in.factors[block], in.sums[block]);
      }
    }
    return sum;
  }
};

}  // namespace

void stream_q4_k(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  start_stream<Codec>(queue, call, mode, blocks, shared);
}

}  // namespace inferno::cuda
