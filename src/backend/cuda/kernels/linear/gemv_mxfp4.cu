// Codec of gemv.cuh for mxfp4.
#include "backend/cuda/kernels/linear/gemv.cuh"

namespace inferno::cuda {
namespace {

// Two chunks. A lane takes a block: 32 codes in four words and the block's exponent.
struct Codec {
  static constexpr bool has_tiles = true;
  static constexpr int runs = 4, step = 128, ahead = 4;
  struct Piece {
    uint4 words = {};
    std::uint8_t exponent = 0;
  };
  __device__ static int element(int part, int run) { return 32 * part + 8 * run; }
  __device__ static Piece load(const std::byte* tile, const Place& at) {
    constexpr tiles::Chunk shape = tiles::chunk_of(WeightFormat::mxfp4);
    const int block = at.part % 2;
    const std::byte* chunk = tile + std::int64_t{at.base / shape.cols + at.part / 2} * shape.bytes;
    return {load_once(chunk + tiles::run_mxfp4(at.group, 4 * block)),
            __ldg(reinterpret_cast<const std::uint8_t*>(chunk) + tiles::exponent_mxfp4(at.group, block))};
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
