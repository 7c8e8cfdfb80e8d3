// The kernels for AVX-512 with VNNI, which multiplies and adds pairs, and fours of bytes, in one instruction.
// Kernels on floats are those of AVX-512.
#include "backend/cpu/kernels.h"

#include "backend/cpu/simd/elementwise.h"
#include "backend/cpu/simd/machine_avx512_vnni.h"
#include "backend/cpu/simd/multiply.h"

namespace inferno::cpu {
namespace {

PanelKernel panel_kernel(WeightFormat format, int width) {
  const PanelKernel integers = integer_kernel_among<Vnni512, 1, 2, 4, 8, 12>(format, width);
  return integers != nullptr ? integers : kernels_avx512.panel_kernel(format, width);
}

}  // namespace

const Kernels kernels_avx512_vnni = {
    .level = IsaLevel::avx512_vnni,
    .panel_kernel = panel_kernel,
    .quantize = quantize<Vnni512>,
};

}  // namespace inferno::cpu
