// Codec of grouped.cuh for q8_0.
#include <cuda_fp16.h>

#include "backend/cuda/device/layouts.cuh"
#include "backend/cuda/kernels/linear/grouped.cuh"

namespace inferno::cuda {
namespace {

// A chunk: eight codes of each of its two blocks, and their scales.
struct Codec : GroupedCodec {
  static constexpr WeightFormat format = WeightFormat::q8_0;
  static constexpr int runs = 2;
  struct Piece {
    uint4 words;
    float2 scales;
  };
  __device__ static int element(int t, int run) { return 32 * run + 8 * t; }
  __device__ static Piece load(const std::byte* chunk, int g, int t) {
    return {*reinterpret_cast<const uint4*>(chunk + tiles::run_q8_0(g, t)),
            __half22float2(*reinterpret_cast<const __half2*>(chunk + tiles::scale_q8_0(g, 0)))};
  }
  __device__ static void decode(std::uint32_t (&out)[4], const Piece& piece, int run) {
    const float scale = run == 0 ? piece.scales.x : piece.scales.y;
    signed_byte_values(out[0], out[1], run == 0 ? piece.words.x : piece.words.z, scale);
    signed_byte_values(out[2], out[3], run == 0 ? piece.words.y : piece.words.w, scale);
  }
};

}  // namespace

void grouped_q8_0(const Queue& queue, const GroupedCall& call, GroupedMode mode) {
  start_grouped<Codec>(queue, call, mode);
}

}  // namespace inferno::cuda
