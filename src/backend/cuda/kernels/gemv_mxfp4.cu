// Codec of gemv.cuh for mxfp4.
#include "backend/cuda/kernels/gemv.cuh"

namespace inferno::cuda {
namespace {

// A lane takes a block: 32 codes in four words and the block's exponent.
struct Codec {
  static constexpr int runs = 4, step = 128, ahead = 4;
  struct Piece {
    uint4 words = {};
    std::uint8_t exponent = 0;
  };
  __device__ static int element(int part, int run) { return 32 * part + 8 * run; }
  __device__ static Piece load(const std::byte* row, int cols, int base, int part) {
    const int block = base / 32 + part;
    return {load_once(row + std::int64_t{block} * 16),
            __ldg(reinterpret_cast<const std::uint8_t*>(row) + cols / 2 + block)};
  }
  __device__ static void decode(std::uint32_t (&out)[4], const Piece& piece, int, int, int run) {
    const uint4& w = piece.words;
    spread_mxfp4(out, run == 0 ? w.x : run == 1 ? w.y : run == 2 ? w.z : w.w);
    const std::uint32_t scale = scale_mxfp4(piece.exponent);
#pragma unroll
    for (int i = 0; i < 4; ++i) out[i] = multiply_pairs(out[i], scale);
  }
};

}  // namespace

void gemv_mxfp4(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  start_gemv<Codec>(queue, call, mode, count);
}

}  // namespace inferno::cuda
