// Codec of gemv.cuh for Q6_K.
#include <cuda_fp16.h>

#include "backend/cuda/kernels/linear/gemv.cuh"

namespace inferno::cuda {
namespace {

// Half a block in a step. A lane takes 16 bytes of low bits, whose two halves lie 64 columns apart, the 16
// bytes of high bits that belong to both, and the two groups' scales.
struct Codec {
  static constexpr bool has_tiles = false;
  static constexpr int runs = 4, step = 128, ahead = 2;
  struct Piece {
    uint4 low = {}, high = {};
    std::int8_t scales[2] = {};
    std::uint16_t factor = 0;
  };
  __device__ static int element(int part, int run) { return 16 * part + 8 * (run % 2) + 64 * (run / 2); }
  __device__ static Piece load(const std::byte* row, const Place& at) {
    const SplitQ6_K layout = {at.cols};
    const auto* scales = layout.scales(row) + at.base / 16 + at.part;
    return {load_once(row + at.base / 2 + 16 * at.part),
            __ldg(reinterpret_cast<const uint4*>(layout.high(row) + at.base / 4) + at.part % 2),
            {__ldg(scales), __ldg(scales + 4)},
            __ldg(layout.factors(row) + at.base / 256)};
  }
  __device__ static std::uint32_t word_of(const uint4& words, int run, int half) {
    if (run % 2 == 0) return half == 0 ? words.x : words.y;
    return half == 0 ? words.z : words.w;
  }
  __device__ static void decode(std::uint32_t (&out)[4], const Piece& piece, int, int part, int run) {
    const float scale =
        __half2float(__ushort_as_half(piece.factor)) * static_cast<float>(piece.scales[run / 2]);
    const int shift = 2 * (part / 2) + 4 * (run / 2);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t low = word_of(piece.low, run, half) >> (4 * (run / 2)) & 0x0F0F0F0Fu;
      const std::uint32_t bytes = low | (word_of(piece.high, run, half) >> shift & 0x03030303u) << 4;
      byte_values(out[2 * half], out[2 * half + 1], bytes, scale, -(128.0f + 32.0f) * scale);
    }
  }
};

}  // namespace

void gemv_q6_k(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  start_gemv<Codec>(queue, call, mode, count);
}

}  // namespace inferno::cuda
