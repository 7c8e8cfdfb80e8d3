// What a lane takes of a chunk of MXFP4 where sixteen rows are an operand of the tensor cores.
#pragma once

#include "backend/cuda/device/layouts.cuh"

namespace inferno::cuda {

// Of row g two neighbouring words, half a block, under one exponent; a run is eight columns, as bf16 pairs.
struct RunsOfMxfp4 {
  static constexpr WeightFormat format = WeightFormat::mxfp4;
  static constexpr int runs = 2;
  struct Piece {
    uint2 words;
    std::uint32_t scale;
  };
  __host__ __device__ static constexpr int element(int t, int run) { return 16 * t + 8 * run; }
  __device__ static Piece load(const std::byte* chunk, int g, int t) {
    return {*reinterpret_cast<const uint2*>(chunk + tiles::run_mxfp4(g, 2 * t)),
            scale_mxfp4(*reinterpret_cast<const std::uint8_t*>(chunk + tiles::exponent_mxfp4(g, t / 2)))};
  }
  __device__ static void decode(std::uint32_t (&out)[4], const Piece& piece, int run) {
    spread_mxfp4(out, run == 0 ? piece.words.x : piece.words.y);
#pragma unroll
    for (int i = 0; i < 4; ++i) out[i] = multiply_pairs(out[i], piece.scale);
  }
};

}  // namespace inferno::cuda
