// The kernels for NEON, which every 64-bit ARM processor has.
#include "backend/cpu/kernels.h"

#include "backend/cpu/simd/attend.h"
#include "backend/cpu/simd/elementwise.h"
#include "backend/cpu/simd/machine_neon.h"
#include "backend/cpu/simd/multiply.h"
#include "backend/cpu/simd/widen.h"

namespace inferno::cpu {
namespace {

constexpr int tile_widths[] = {1, 2, 4};

}  // namespace

const Kernels kernels_neon = {
    .level = IsaLevel::neon,
    .widths = tile_widths,
    .width_count = sizeof(tile_widths) / sizeof(tile_widths[0]),
    .panel_kernel = panel_kernel_among<Neon, 1, 2, 4>,
    .expand_block = expand_block<Neon>,
    .quantize = quantize<Neon>,
    .normalize = normalize<Neon>,
    .add_scaled = add_scaled<Neon>,
    .activate = activate<Neon>,
    .attend = attend<Neon>,
    .widen = widen<Neon>,
};

}  // namespace inferno::cpu
