// Codec of stream.cuh for q8_0.
#include "backend/cuda/kernels/stream_bytes.cuh"

namespace inferno::cuda {
namespace {

// A lane's 16 bytes are eight columns of each of a chunk's two blocks.
struct Codec {
  static constexpr InputForm form = InputForm::bytes;
  static constexpr bool whole = false;
  static constexpr int bytes = tiles::chunk_of(WeightFormat::q8_0).bytes;

  struct Inputs : ByteInputs {
    __device__ void load(const StreamRoom& room, int chunk, int, int lane) {
      ByteInputs::load(room, 2 * chunk, lane);
    }
  };

  __device__ static void add(ByteSums& c, const std::byte* low, const std::byte* high, const Inputs& in,
                             int chunk, int lane) {
    const uint4 w = *reinterpret_cast<const uint4*>(low + chunk * bytes + 16 * lane);
    const uint4 v = *reinterpret_cast<const uint4*>(high + chunk * bytes + 16 * lane);
    multiply_add_bytes<false>(c, w.x, v.x, w.y, v.y, in.of(2 * chunk));
    multiply_add_bytes<false>(c, w.z, v.z, w.w, v.w, in.of(2 * chunk + 1));
  }

  __device__ static float2 multiply(const std::byte* low, const std::byte* high, int chunks, const Inputs& in,
                                    int lane) {
    const int g = lane / 4, t = lane % 4, scale = tiles::scale_q8_0(g, t % 2);
    float2 sums = {0.0f, 0.0f};
#pragma unroll 2
    for (int chunk = 0; chunk < chunks; chunk += 2) {
      ByteSums c = {};
      add(c, low, high, in, chunk, lane);
      if (chunk + 1 < chunks) add(c, low, high, in, chunk + 1, lane);
      const int at = chunk + t / 2;  // this lane's block is there
      if (at < chunks) {
        const float factor = in.factors[2 * chunk];
        const auto* d = reinterpret_cast<const __half*>(low + at * bytes + scale);
        const auto* e = reinterpret_cast<const __half*>(high + at * bytes + scale);
        sums.x += joined(c[0], c[1]) * (factor * __half2float(*d));
        sums.y += joined(c[2], c[3]) * (factor * __half2float(*e));
      }
    }
    return sums;
  }
};

}  // namespace

const StreamCodec& stream_q8_0() {
  static const StreamCodec codec = {{WeightFormat::q8_0, 64}, start_stream<Codec>};
  return codec;
}

}  // namespace inferno::cuda
