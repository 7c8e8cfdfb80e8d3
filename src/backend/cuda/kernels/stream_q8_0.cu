// Codec of stream.cuh for q8_0.
#include "backend/cuda/kernels/stream_bytes.cuh"

namespace inferno::cuda {
namespace {

// A lane's 16 bytes are eight columns of each of a chunk's two blocks. Of two chunks the first blocks make
// one product, the second ones the other.
struct Codec {
  static constexpr InputForm form = InputForm::bytes;
  static constexpr bool whole = false;
  static constexpr int bytes = tiles::chunk_of(WeightFormat::q8_0).bytes;

  struct Inputs {
    const std::byte* x;    // the block that the lane's column of the operand belongs to
    const float* factors;  // of the block that its sums belong to
    __device__ void load(const StreamRoom& room, int chunk, int, int lane) {
      const int g = lane / 4, t = lane % 4;
      x = room.in + 64 * (2 * chunk + 2 * (g / 2 % 2) + g / 4);
      factors = room.factors + 2 * chunk + 2 * (t % 2) + t / 2;
    }
  };

  __device__ static float multiply(const std::byte* tile, int chunks, const Inputs& in, int lane) {
    const int g = lane / 4, t = lane % 4;
    const std::byte* scales = tile + t % 2 * bytes + tiles::scale_q8_0(g, t / 2);
    float sum = 0.0f;
#pragma unroll 2
    for (int chunk = 0; chunk < chunks; chunk += 2) {
      const bool two = chunk + 1 < chunks;
      const std::byte* from = tile + chunk * bytes + 16 * lane;
      const uint4 w = *reinterpret_cast<const uint4*>(from);
      const uint4 v = two ? *reinterpret_cast<const uint4*>(from + bytes) : make_uint4(0, 0, 0, 0);
      const float product =
          four_blocks<false>({{{w.x, w.y}, {v.x, v.y}, {w.z, w.w}, {v.z, v.w}}}, in.x + 128 * chunk, lane);
      if (two || t % 2 == 0) {
        const __half scale = *reinterpret_cast<const __half*>(scales + chunk * bytes);
        sum += product * (in.factors[2 * chunk] * __half2float(scale));
      }
    }
    return sum;
  }
};

}  // namespace

void stream_q8_0(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  start_stream<Codec>(queue, call, mode, blocks, shared);
}

}  // namespace inferno::cuda
