// Codecs of stream.cuh for bf16 and f16.
#include "backend/cuda/kernels/stream.cuh"

namespace inferno::cuda {
namespace {

// A lane takes eight columns of each 32. All eight columns of the other operand are the same input, so that
// every lane ends with whole sums. f16 inputs have a factor for each 32 columns, because f16 has too small a
// range.
template <bool F16>
struct Codec {
  static constexpr InputForm form = F16 ? InputForm::f16 : InputForm::bf16;
  static constexpr bool whole = true;

  struct Inputs {
    const std::byte* x;
    const float* factors;
    __device__ void load(const StreamRoom& room, int chunk, int, int lane) {
      x = room.in + chunk * 128 + lane % 4 * 16;
      factors = room.factors + 2 * chunk;
    }
  };

  __device__ static void add(float (&c)[4], float (&e)[4], const std::byte* low, const std::byte* high,
                             const std::byte* x) {
    const uint4 w = *reinterpret_cast<const uint4*>(low), v = *reinterpret_cast<const uint4*>(high);
    const uint4 b = *reinterpret_cast<const uint4*>(x);
    if constexpr (F16) {
      multiply_add_f16(c, w.x, v.x, w.y, v.y, b.x, b.y);
      multiply_add_f16(e, w.z, v.z, w.w, v.w, b.z, b.w);
    } else {
      multiply_add(c, w.x, v.x, w.y, v.y, b.x, b.y);
      multiply_add(e, w.z, v.z, w.w, v.w, b.z, b.w);
    }
  }

  __device__ static float2 multiply(const std::byte* low, const std::byte* high, int chunks, const Inputs& in,
                                    int lane) {
    const int own = tiles::run_16_bit(lane / 4, lane % 4);
    low += own;
    high += own;
    float c[4] = {}, e[4] = {}, sums[2] = {};
#pragma unroll 4
    for (int half = 0; half < 2 * chunks; ++half) {
      add(c, e, low + 512 * half, high + 512 * half, in.x + 64 * half);
      if constexpr (F16) {
        const float factor = in.factors[half];
        sums[0] += (c[0] + e[0]) * factor;
        sums[1] += (c[2] + e[2]) * factor;
#pragma unroll
        for (int i = 0; i < 4; ++i) c[i] = e[i] = 0.0f;
      }
    }
    if constexpr (F16) return {sums[0], sums[1]};
    return {c[0] + e[0], c[2] + e[2]};
  }
};

}  // namespace

const StreamCodec& stream_bf16() {
  static const StreamCodec codec = {{WeightFormat::bf16, 64}, start_stream<Codec<false>>};
  return codec;
}
const StreamCodec& stream_f16() {
  static const StreamCodec codec = {{WeightFormat::f16, 64}, start_stream<Codec<true>>};
  return codec;
}

}  // namespace inferno::cuda
