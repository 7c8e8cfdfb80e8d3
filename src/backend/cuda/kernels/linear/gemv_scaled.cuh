// The codec of gemv.cuh for blocks under one scale.
#pragma once

#include "backend/cuda/device/scaled.cuh"
#include "backend/cuda/kernels/linear/gemv.cuh"

namespace inferno::cuda {

// A step is a chunk. The sums of a block are multiplied by its scale: those of a lane are of rows 2 t and
// 2 t + 1.
template <class Tile>
struct GemvScaledCodec {
  static constexpr bool has_tiles = true;
  static constexpr int runs = Tile::runs, step = 128;
  static constexpr int blocks = Tile::blocks, block_runs = Tile::block_runs;
  static constexpr int ahead = Tile::shape().has_bytes || blocks > 2 ? 2 : 4;
  struct Fragment {
    typename Tile::Fragment codes;
    float2 scales[blocks] = {};
  };
  __device__ static int element(int part, int run) { return Tile::element(part, run); }
  __device__ static Fragment load(const std::byte* tile, const LanePosition& at) {
    const std::byte* chunk = tile + std::int64_t{at.base / step} * Tile::shape().bytes();
    Fragment out;
#pragma unroll
    for (int half = 0; half < (Tile::shape().has_bytes ? 2 : 1); ++half) {
      out.codes.words[half] = load_once(chunk + Tile::shape().run(at.group, at.part + 8 * half));
    }
    out.codes.extra = Tile::template load_extra<true>(chunk, at.group, at.part);
#pragma unroll
    for (int block = 0; block < blocks; ++block) {
      const std::byte* from = chunk + Tile::shape().scale(2 * at.part, block);
      if constexpr (Tile::shape().scale_bytes == 2) {
        out.scales[block] = __half22float2(__ldg(reinterpret_cast<const __half2*>(from)));
      } else {
        out.scales[block] = __ldg(reinterpret_cast<const float2*>(from));
      }
    }
    return out;
  }
  __device__ static void decode(std::uint32_t (&out)[4], const Fragment& fragment, int, int, int run) {
    Tile::unpack(out, fragment.codes, run);
  }
  __device__ static float2 scales(const Fragment& fragment, int block) {
    return {fragment.scales[block].x * Tile::unit, fragment.scales[block].y * Tile::unit};
  }
};

}  // namespace inferno::cuda
