// Codecs of grouped.cuh for MXFP4.
#include "backend/cuda/device/f16.cuh"
#include "backend/cuda/kernels/linear/grouped.cuh"

namespace inferno::cuda {
namespace {

struct Codec : GroupedCodec, Mxfp4Fragments {};

struct CodecF16 : GroupedCodec, Mxfp4FragmentsF16 {
  static constexpr int chains = 2;
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
