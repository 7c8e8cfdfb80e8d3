// Codecs of grouped.cuh for Q8_0 and Q4_K.
#include <cuda_fp16.h>

#include "backend/cuda/device/layouts.cuh"
#include "backend/cuda/kernels/linear/grouped.cuh"

namespace inferno::cuda {
namespace {

// A lane takes eight codes of each of a chunk's two blocks, and their scales.
struct CodecQ8_0 : GroupedCodec {
  static constexpr WeightFormat format = WeightFormat::q8_0;
  static constexpr int runs = 2;
  struct Fragment {
    uint4 words;
    float2 scales;
  };
  __device__ static int element(int t, int run) { return 32 * run + 8 * t; }
  __device__ static Fragment load(const std::byte* chunk, int g, int t) {
    return {*reinterpret_cast<const uint4*>(chunk + tiles::run_q8_0(g, t)),
            __half22float2(*reinterpret_cast<const __half2*>(chunk + tiles::scale_q8_0(g, 0)))};
  }
  __device__ static void decode(std::uint32_t (&out)[4], const Fragment& fragment, int run) {
    const float scale = run == 0 ? fragment.scales.x : fragment.scales.y;
    signed_byte_values(out[0], out[1], run == 0 ? fragment.words.x : fragment.words.z, scale);
    signed_byte_values(out[2], out[3], run == 0 ? fragment.words.y : fragment.words.w, scale);
  }
};

// A lane takes eight columns of each of a chunk's eight groups, two groups in the nibbles of eight bytes.
struct CodecQ4_K : GroupedCodec {
  static constexpr WeightFormat format = WeightFormat::q4_k;
  static constexpr int runs = 8, chains = 2;
  struct Fragment {
    uint4 words[2], head;
  };
  __device__ static int element(int t, int run) { return 32 * run + 8 * t; }
  __device__ static Fragment load(const std::byte* chunk, int g, int t) {
    return {{*reinterpret_cast<const uint4*>(chunk + tiles::run_q4_k(g, t)),
             *reinterpret_cast<const uint4*>(chunk + tiles::run_q4_k(g, 16 + t))},
            *reinterpret_cast<const uint4*>(chunk + tiles::head_q4_k(g))};
  }
  __device__ static void decode(std::uint32_t (&out)[4], const Fragment& fragment, int run) {
    const uint4& words = fragment.words[run / 4];
    const int shift = 4 * (run % 2);
    const bool low = run % 4 < 2;
    grouped_byte_values(out, (low ? words.x : words.z) >> shift & 0x0F0F0F0Fu,
                        (low ? words.y : words.w) >> shift & 0x0F0F0F0Fu, scales_k(fragment.head, run));
  }
};

}  // namespace

void grouped_q8_0(const Queue& queue, const GroupedCall& call, GroupedMode mode) {
  launch_grouped<CodecQ8_0>(queue, call, mode);
}

void grouped_q4_k(const Queue& queue, const GroupedCall& call, GroupedMode mode) {
  launch_grouped<CodecQ4_K>(queue, call, mode);
}

}  // namespace inferno::cuda
