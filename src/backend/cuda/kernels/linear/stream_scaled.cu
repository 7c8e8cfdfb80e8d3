// Codecs of stream_kernel.cuh for blocks under one scale: codes in bf16, the scale on the sums of a
// block.
#include "backend/cuda/device/scaled.cuh"
#include "backend/cuda/kernels/linear/stream_kernel.cuh"

namespace inferno::cuda {
namespace {

// Even columns of operand b are the first tile's input, odd columns the second's, so that every lane ends
// with complete sums.
template <class Tile>
struct Codec {
  static constexpr InputForm form = InputForm::bf16;
  static constexpr bool whole = true, one_part = false;

  template <bool>
  struct Sums {
    struct Inputs {
      const std::byte* x;
      __device__ void load(const StreamSmem& smem, int a, int b, int, int lane) {
        x = smem.in + (lane / 4 % 2 == 0 ? a : b) * 256 + lane % 4 * 16;
      }
    };
    float2 sums = {};
    __device__ float2 rows(int) const { return sums; }

    __device__ void add(const StreamSlice& slice, const Inputs& in, int lane) {
      const int g = lane / 4, t = lane % 4;
#pragma unroll 1
      for (int chunk = 0; chunk < slice.chunks; ++chunk) {
        const std::byte* first = slice.data + chunk * Tile::shape().bytes();
        const std::byte* second = first + slice.to_second;
        const typename Tile::Fragment w = Tile::load(first, g, t), v = Tile::load(second, g, t);
#pragma unroll
        for (int block = 0; block < Tile::blocks; ++block) {
          float c[4] = {}, e[4] = {};
#pragma unroll
          for (int i = 0; i < Tile::block_runs; ++i) {
            const int run = block * Tile::block_runs + i;
            std::uint32_t a[4], b[4];
            Tile::unpack(a, w, run);
            Tile::unpack(b, v, run);
            const uint4 x = *reinterpret_cast<const uint4*>(in.x + 256 * chunk + 64 * run);
            mma_bf16(c, a[0], b[0], a[1], b[1], x.x, x.y);
            mma_bf16(e, a[2], b[2], a[3], b[3], x.z, x.w);
          }
          sums.x += (c[0] + e[0]) * Tile::scale(first, g, block);
          sums.y += (c[3] + e[3]) * Tile::scale(second, g, block);
        }
      }
    }
  };
};

}  // namespace

void stream_q4_0(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  launch_stream<Codec<TileQ4_0>>(queue, call, mode, blocks, shared);
}
void stream_int4_128(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  launch_stream<Codec<TileInt4_128>>(queue, call, mode, blocks, shared);
}
void stream_int8_64(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  launch_stream<Codec<TileInt8_64>>(queue, call, mode, blocks, shared);
}
void stream_fp8_128(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  launch_stream<Codec<TileFp8_128>>(queue, call, mode, blocks, shared);
}
void stream_nvfp4_64(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  launch_stream<Codec<TileNvfp4_64>>(queue, call, mode, blocks, shared);
}

}  // namespace inferno::cuda
