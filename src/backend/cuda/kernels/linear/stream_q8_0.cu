// Codec of stream.cuh for q8_0.
#include "backend/cuda/kernels/linear/stream_bytes.cuh"

namespace inferno::cuda {
namespace {

// A lane's 16 bytes are eight columns of each of a chunk's two blocks. Of two chunks the first blocks make
// one product, the second ones the other.
struct Codec {
  static constexpr InputForm form = InputForm::bytes;
  static constexpr bool whole = false, one_part = false;
  static constexpr int bytes = tiles::chunk_of(WeightFormat::q8_0).bytes, at_once = 2;

  struct Inputs {
    const std::byte* x;    // the block that the lane's column of the operand belongs to
    const float* factors;  // of the block that its sums belong to
    __device__ void load(const StreamRoom& room, int chunk, int lane) {
      const int g = lane / 4, t = lane % 4;
      x = room.in + 64 * (2 * chunk + 2 * (g / 2 % 2) + g / 4);
      factors = room.factors + 2 * chunk + 2 * (t % 2) + t / 2;
    }
  };

  // `two`: the second chunk exists.
  __device__ static float multiply(const std::byte* tile, int chunk, bool two, const Inputs& in, int lane) {
    const int g = lane / 4, t = lane % 4;
    const std::byte* from = tile + chunk * bytes + 16 * lane;
    const uint4 w = *reinterpret_cast<const uint4*>(from);
    const uint4 v = two ? *reinterpret_cast<const uint4*>(from + bytes) : make_uint4(0, 0, 0, 0);
    const float product =
        four_blocks<false>({{{w.x, w.y}, {v.x, v.y}, {w.z, w.w}, {v.z, v.w}}}, in.x + 128 * chunk, lane);
    if (!two && t % 2 != 0) return 0.0f;
    const std::byte* scale = tile + (chunk + t % 2) * bytes + tiles::scale_q8_0(g, t / 2);
    return product * (in.factors[2 * chunk] * __half2float(*reinterpret_cast<const __half*>(scale)));
  }

  template <bool>
  using Sums = TileSums<Codec>;
};

}  // namespace

void stream_q8_0(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  start_stream<Codec>(queue, call, mode, blocks, shared);
}

}  // namespace inferno::cuda
