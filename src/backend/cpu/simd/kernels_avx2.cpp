// The kernels for AVX2 with FMA and F16C.
#include "backend/cpu/kernels.h"

#include "backend/cpu/simd/attend.h"
#include "backend/cpu/simd/elementwise.h"
#include "backend/cpu/simd/machine_avx2.h"
#include "backend/cpu/simd/multiply.h"
#include "backend/cpu/simd/widen.h"

namespace inferno::cpu {
namespace {

constexpr int tile_widths[] = {1, 2, 4};

}  // namespace

const Kernels kernels_avx2 = {
    .level = IsaLevel::avx2,
    .widths = tile_widths,
    .width_count = sizeof(tile_widths) / sizeof(tile_widths[0]),
    .panel_kernel = panel_kernel_among<Avx2, 1, 2, 4>,
    .expand_block = expand_block<Avx2>,
    .quantize = quantize<Avx2>,
    .normalize = normalize<Avx2>,
    .add_scaled = add_scaled<Avx2>,
    .activate = activate<Avx2>,
    .attend = attend<Avx2>,
    .widen = widen<Avx2>,
};

}  // namespace inferno::cpu
