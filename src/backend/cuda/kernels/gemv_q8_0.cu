// Codec of gemv.cuh for q8_0.
#include <cuda_fp16.h>

#include "backend/cuda/kernels/gemv.cuh"

namespace inferno::cuda {
namespace {

// A lane takes half a block: 16 codes and the block's scale.
struct Codec {
  static constexpr int runs = 2, step = 64, ahead = 4;
  struct Piece {
    uint4 words = {};
    std::uint16_t scale = 0;
  };
  __device__ static int element(int part, int run) { return 16 * part + 8 * run; }
  __device__ static Piece load(const std::byte* row, int cols, int base, int part) {
    const int k = base + 16 * part;
    return {load_once(row + k), __ldg(reinterpret_cast<const std::uint16_t*>(row + cols) + k / 32)};
  }
  // A byte in the middle of the mantissa of 2^15 is 2^15 + byte, a float without any conversion. The byte is
  // 128 more than the code; what is too much is taken off together with the product.
  __device__ static float value(std::uint32_t word, unsigned byte, float scale, float excess) {
    return fmaf(__uint_as_float(__byte_perm(word, 0x47000000u, 0x7404u + (byte << 4))), scale, excess);
  }
  __device__ static void decode(std::uint32_t (&out)[4], const Piece& piece, int, int, int run) {
    const float scale = __half2float(__ushort_as_half(piece.scale)), excess = -(32768.0f + 128.0f) * scale;
    const std::uint32_t low = (run == 0 ? piece.words.x : piece.words.z) ^ 0x80808080u;
    const std::uint32_t high = (run == 0 ? piece.words.y : piece.words.w) ^ 0x80808080u;
    out[0] = packed(value(low, 0, scale, excess), value(low, 1, scale, excess));
    out[1] = packed(value(low, 2, scale, excess), value(low, 3, scale, excess));
    out[2] = packed(value(high, 0, scale, excess), value(high, 1, scale, excess));
    out[3] = packed(value(high, 2, scale, excess), value(high, 3, scale, excess));
  }
};

}  // namespace

void gemv_q8_0(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  start_gemv<Codec>(queue, call, mode, count);
}

}  // namespace inferno::cuda
