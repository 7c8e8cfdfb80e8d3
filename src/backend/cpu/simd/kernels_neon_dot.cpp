// The kernels for NEON with dot products of four signed bytes (FEAT_DotProd: Neoverse N1, Apple M1 and
// later). They serve Q8_0 with one or two tokens; the others are those of NEON.
#include "backend/cpu/kernels.h"

#include "backend/cpu/simd/elementwise.h"
#include "backend/cpu/simd/machine_neon.h"
#include "backend/cpu/simd/multiply.h"

namespace inferno::cpu {
namespace {

struct NeonDot : Neon {
  static constexpr int subtracted = 128;  // by dot_bytes() from each weight, because both factors are signed
  static Ints dot_bytes(Ints sum, Words weights, const std::int32_t* quad) {
    const int8x16_t x = vreinterpretq_s8_s32(vdupq_n_s32(*quad));
    return of<Ints>([&](int i) {
      const int16x8_t top = vdupq_n_s16(static_cast<std::int16_t>(0x8080));
      return vdotq_s32(sum.part[i], vreinterpretq_s8_s16(veorq_s16(weights.part[i], top)), x);
    });
  }
};

PanelKernel panel_kernel(WeightFormat format, int width) {
  const PanelKernel bytes = byte_kernel_among<NeonDot, 1, 2>(format, width);
  return bytes != nullptr ? bytes : kernels_neon.panel_kernel(format, width);
}

}  // namespace

const Kernels kernels_neon_dot = {
    .level = IsaLevel::neon_dot,
    .panel_kernel = panel_kernel,
    .quantize = quantize<NeonDot>,
};

}  // namespace inferno::cpu
