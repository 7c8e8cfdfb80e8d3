// The kernels for NEON with products of unsigned and signed bytes (FEAT_I8MM: Neoverse V1 and N2, Apple M2
// and later). They serve Q8_0 with one or two tokens; the others are those of NEON.
#include "backend/cpu/kernels.h"

#include "backend/cpu/simd/elementwise.h"
#include "backend/cpu/simd/machine_neon.h"
#include "backend/cpu/simd/multiply.h"

namespace inferno::cpu {
namespace {

struct NeonI8mm : Neon {
  static Ints dot_bytes(Ints sum, Words weights, const std::int32_t* quad) {
    const int8x16_t x = vreinterpretq_s8_s32(vdupq_n_s32(*quad));
    return of<Ints>(
        [&](int i) { return vusdotq_s32(sum.part[i], vreinterpretq_u8_s16(weights.part[i]), x); });
  }
};

PanelKernel panel_kernel(WeightFormat format, int width) {
  const PanelKernel bytes = byte_kernel_among<NeonI8mm, 1, 2>(format, width);
  return bytes != nullptr ? bytes : kernels_neon.panel_kernel(format, width);
}

}  // namespace

const Kernels kernels_neon_i8mm = {
    .level = IsaLevel::neon_i8mm,
    .panel_kernel = panel_kernel,
    .quantize = quantize<NeonI8mm>,
};

}  // namespace inferno::cpu
