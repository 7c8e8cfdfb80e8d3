// Codec of gemv.cuh for bf16.
#include "backend/cuda/kernels/gemv.cuh"

namespace inferno::cuda {
namespace {

// Four lanes take 32 neighbouring columns of a row: 64 bytes.
struct Codec {
  static constexpr int runs = 1, step = 32, ahead = 4;
  struct Piece {
    uint4 words = {};
  };
  __device__ static int element(int part, int) { return 8 * part; }
  __device__ static Piece load(const std::byte* row, int, int base, int part) {
    return {load_once(row + (std::int64_t{base} + 8 * part) * 2)};
  }
  __device__ static void decode(std::uint32_t (&out)[4], const Piece& piece, int, int, int) {
    out[0] = piece.words.x;
    out[1] = piece.words.y;
    out[2] = piece.words.z;
    out[3] = piece.words.w;
  }
};

}  // namespace

void gemv_bf16(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  start_gemv<Codec>(queue, call, mode, count);
}

}  // namespace inferno::cuda
