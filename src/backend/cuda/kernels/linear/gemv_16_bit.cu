// Codec of gemv.cuh for bf16.
#include <cuda_fp16.h>

#include "backend/cuda/kernels/linear/gemv.cuh"

namespace inferno::cuda {
namespace {

// Half a chunk: four lanes take 32 neighbouring columns of a row, 64 bytes.
struct CodecBf16 {
  static constexpr bool has_tiles = true;
  static constexpr int runs = 1, step = 32, ahead = 4, half_chunk = 512;
  struct Piece {
    uint4 words = {};
  };
  __device__ static int element(int part, int) { return 8 * part; }
  __device__ static Piece load(const std::byte* tile, const Place& at) {
    return {
        load_once(tile + std::int64_t{at.base / step} * half_chunk + tiles::run_16_bit(at.group, at.part))};
  }
  __device__ static void decode(std::uint32_t (&out)[4], const Piece& piece, int, int, int) {
    out[0] = piece.words.x;
    out[1] = piece.words.y;
    out[2] = piece.words.z;
    out[3] = piece.words.w;
  }
};

struct CodecF16 {
  static constexpr bool has_tiles = true;
  static constexpr int runs = 1, step = 32, ahead = 4, half_chunk = 512;
  struct Piece {
    uint4 words = {};
  };
  __device__ static int element(int part, int) { return 8 * part; }
  __device__ static Piece load(const std::byte* tile, const Place& at) {
    return {
        load_once(tile + std::int64_t{at.base / step} * half_chunk + tiles::run_16_bit(at.group, at.part))};
  }
  __device__ static std::uint32_t narrowed(std::uint32_t pair) {
    const float2 wide = __half22float2(*reinterpret_cast<const __half2*>(&pair));
    return packed(wide.x, wide.y);
  }
  __device__ static void decode(std::uint32_t (&out)[4], const Piece& piece, int, int, int) {
    out[0] = narrowed(piece.words.x);
    out[1] = narrowed(piece.words.y);
    out[2] = narrowed(piece.words.z);
    out[3] = narrowed(piece.words.w);
  }
};

}  // namespace

void gemv_bf16(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  start_gemv<CodecBf16>(queue, call, mode, count);
}

void gemv_f16(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  start_gemv<CodecF16>(queue, call, mode, count);
}

}  // namespace inferno::cuda
