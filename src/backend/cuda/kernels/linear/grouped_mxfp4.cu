// Codecs of grouped.cuh for MXFP4.
#include "backend/cuda/device/layouts.cuh"
#include "backend/cuda/kernels/linear/grouped.cuh"

namespace inferno::cuda {
namespace {

struct Codec : GroupedCodec, Mxfp4Fragments {};

// With f16 inputs: fewer instructions, because half of the codes are in place for f16. Weights are exact down
// to 2^-24, the smallest f16: blocks with scales below 2^-23 lose less than 2^-21 of an input.
struct CodecF16 : Codec {
  static constexpr int chains = 2;
  __device__ static Fragment load(const std::byte* chunk, int g, int t) {
    const std::uint32_t exponent =
        *reinterpret_cast<const std::uint8_t*>(chunk + tiles::exponent_mxfp4(g, t / 2));
    // 2^14 times the scale, which is at most 2: byte exponents 98 to 128 become f16 exponents 0 to 30.
    return {*reinterpret_cast<const uint2*>(chunk + tiles::run_mxfp4(g, 2 * t)),
            (max(exponent, 98u) - 98u) * 0x04000400u};
  }
  __device__ static void decode(std::uint32_t (&out)[4], const Fragment& fragment, int run) {
    unpack_mxfp4_f16(out, run == 0 ? fragment.words.x : fragment.words.y);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(out[i]) : "r"(out[i]), "r"(fragment.scale));
    }
  }
  __device__ static void multiply(float (&c)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                  std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
    mma_f16(c, a0, a1, a2, a3, b0, b1);
  }
};

}  // namespace

void grouped_mxfp4(const Queue& queue, const GroupedCall& call, GroupedMode mode) {
  launch_grouped<Codec>(queue, call, mode);
}

void grouped_mxfp4_f16(const Queue& queue, const GroupedCall& call, GroupedMode mode) {
  launch_grouped<CodecF16>(queue, call, mode);
}

}  // namespace inferno::cuda
