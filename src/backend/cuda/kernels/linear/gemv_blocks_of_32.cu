// Codecs of gemv.cuh for Q8_0 and MXFP4, whose blocks have 32 columns.
#include <cuda_fp16.h>

#include "backend/cuda/kernels/linear/gemv.cuh"

namespace inferno::cuda {
namespace {

// A step is a chunk. A lane takes eight codes of each of its two blocks, and their scales.
struct CodecQ8_0 {
  static constexpr bool has_tiles = true;
  static constexpr int runs = 2, step = 64, ahead = 4;
  struct Fragment {
    uint4 words = {};
    std::uint32_t scales = 0;
  };
  __device__ static int element(int part, int run) { return 8 * part + 32 * run; }
  __device__ static Fragment load(const std::byte* tile, const LanePosition& at) {
    constexpr tiles::Chunk shape = tiles::chunk_of(WeightFormat::q8_0);
    const std::byte* chunk = tile + std::int64_t{at.base / shape.cols} * shape.bytes;
    return {load_once(chunk + tiles::run_q8_0(at.group, at.part)),
            __ldg(reinterpret_cast<const std::uint32_t*>(chunk + tiles::scale_q8_0(at.group, 0)))};
  }
  __device__ static void decode(std::uint32_t (&out)[4], const Fragment& fragment, int, int, int run) {
    const float2 scales = __half22float2(*reinterpret_cast<const __half2*>(&fragment.scales));
    const float scale = run == 0 ? scales.x : scales.y;
    signed_byte_values(out[0], out[1], run == 0 ? fragment.words.x : fragment.words.z, scale);
    signed_byte_values(out[2], out[3], run == 0 ? fragment.words.y : fragment.words.w, scale);
  }
};

// A step is two chunks. A lane takes a block: 32 codes in four words, and its exponent.
struct CodecMxfp4 {
  static constexpr bool has_tiles = true;
  static constexpr int runs = 4, step = 128, ahead = 4;
  struct Fragment {
    uint4 words = {};
    std::uint8_t exponent = 0;
  };
  __device__ static int element(int part, int run) { return 32 * part + 8 * run; }
  __device__ static Fragment load(const std::byte* tile, const LanePosition& at) {
    constexpr tiles::Chunk shape = tiles::chunk_of(WeightFormat::mxfp4);
    const int block = at.part % 2;
    const std::byte* chunk = tile + std::int64_t{at.base / shape.cols + at.part / 2} * shape.bytes;
    return {load_once(chunk + tiles::run_mxfp4(at.group, 4 * block)),
            __ldg(reinterpret_cast<const std::uint8_t*>(chunk) + tiles::exponent_mxfp4(at.group, block))};
  }
  __device__ static void decode(std::uint32_t (&out)[4], const Fragment& fragment, int, int, int run) {
    const uint4& w = fragment.words;
    unpack_mxfp4_bf16(out, run == 0 ? w.x : run == 1 ? w.y : run == 2 ? w.z : w.w);
    const std::uint32_t scale = scale_mxfp4(fragment.exponent);
#pragma unroll
    for (int i = 0; i < 4; ++i) out[i] = mul_bf16x2(out[i], scale);
  }
};

}  // namespace

void gemv_q8_0(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  launch_gemv<CodecQ8_0>(queue, call, mode, count);
}

void gemv_mxfp4(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  launch_gemv<CodecMxfp4>(queue, call, mode, count);
}

}  // namespace inferno::cuda
