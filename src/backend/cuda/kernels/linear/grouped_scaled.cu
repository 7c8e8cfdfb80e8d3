// Codecs of grouped.cuh for blocks under one scale: codes in bf16, the scale on the sums of a block.
#include "backend/cuda/device/scaled.cuh"
#include "backend/cuda/kernels/linear/grouped.cuh"

namespace inferno::cuda {
namespace {

template <class Tile>
struct Codec : GroupedCodec {
  static constexpr WeightFormat format = Tile::format;
  static constexpr int blocks = Tile::blocks, block_runs = Tile::block_runs;
  struct Fragment {
    typename Tile::Fragment codes;
    float scales[blocks];
  };
  __device__ static int element(int t, int run) { return Tile::element(t, run); }
  __device__ static Fragment load(const std::byte* chunk, int g, int t) {
    Fragment out = {Tile::load(chunk, g, t), {}};
#pragma unroll
    for (int block = 0; block < blocks; ++block) out.scales[block] = Tile::scale(chunk, g, block);
    return out;
  }
  __device__ static void decode(std::uint32_t (&out)[4], const Fragment& fragment, int run) {
    Tile::unpack(out, fragment.codes, run);
  }
};

}  // namespace

void grouped_q4_0(const Queue& queue, const GroupedCall& call, GroupedMode mode) {
  launch_grouped<Codec<TileQ4_0>>(queue, call, mode);
}
void grouped_int4_32(const Queue& queue, const GroupedCall& call, GroupedMode mode) {
  launch_grouped<Codec<TileInt4_32>>(queue, call, mode);
}
void grouped_int4_64(const Queue& queue, const GroupedCall& call, GroupedMode mode) {
  launch_grouped<Codec<TileInt4_64>>(queue, call, mode);
}
void grouped_int4_128(const Queue& queue, const GroupedCall& call, GroupedMode mode) {
  launch_grouped<Codec<TileInt4_128>>(queue, call, mode);
}
void grouped_int8_64(const Queue& queue, const GroupedCall& call, GroupedMode mode) {
  launch_grouped<Codec<TileInt8_64>>(queue, call, mode);
}
void grouped_fp8_128(const Queue& queue, const GroupedCall& call, GroupedMode mode) {
  launch_grouped<Codec<TileFp8_128>>(queue, call, mode);
}
void grouped_nvfp4_64(const Queue& queue, const GroupedCall& call, GroupedMode mode) {
  launch_grouped<Codec<TileNvfp4_64>>(queue, call, mode);
}

}  // namespace inferno::cuda
