// Codecs of grouped.cuh for bf16 and f16.
#include <cuda_fp16.h>

#include "backend/cuda/device/layouts.cuh"
#include "backend/cuda/kernels/linear/grouped.cuh"

namespace inferno::cuda {
namespace {

// A lane takes eight columns of each half of a chunk.
template <WeightFormat Format>
struct Codec : GroupedCodec {
  static constexpr WeightFormat format = Format;
  static constexpr int runs = 2;
  struct Fragment {
    uint4 words[2];
  };
  __device__ static int element(int t, int run) { return 32 * run + 8 * t; }
  __device__ static Fragment load(const std::byte* chunk, int g, int t) {
    const auto* half = chunk + tiles::run_16_bit(g, t);
    return {{*reinterpret_cast<const uint4*>(half), *reinterpret_cast<const uint4*>(half + 512)}};
  }
  __device__ static std::uint32_t narrowed(std::uint32_t pair) {
    if constexpr (Format == WeightFormat::bf16) return pair;
    const float2 wide = __half22float2(*reinterpret_cast<const __half2*>(&pair));
    return pack_bf16x2(wide.x, wide.y);
  }
  __device__ static void decode(std::uint32_t (&out)[4], const Fragment& fragment, int run) {
    out[0] = narrowed(fragment.words[run].x);
    out[1] = narrowed(fragment.words[run].y);
    out[2] = narrowed(fragment.words[run].z);
    out[3] = narrowed(fragment.words[run].w);
  }
};

}  // namespace

void grouped_bf16(const Queue& queue, const GroupedCall& call, GroupedMode mode) {
  launch_grouped<Codec<WeightFormat::bf16>>(queue, call, mode);
}

void grouped_f16(const Queue& queue, const GroupedCall& call, GroupedMode mode) {
  launch_grouped<Codec<WeightFormat::f16>>(queue, call, mode);
}

}  // namespace inferno::cuda
