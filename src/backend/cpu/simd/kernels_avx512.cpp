// The kernels for AVX-512 F, BW, VL and DQ.
#include "backend/cpu/kernels.h"

#include "backend/cpu/simd/attend.h"
#include "backend/cpu/simd/elementwise.h"
#include "backend/cpu/simd/machine_avx512.h"
#include "backend/cpu/simd/multiply.h"
#include "backend/cpu/simd/widen.h"

namespace inferno::cpu {
namespace {

struct Plain512 : Avx512 {
  static Ints dot(Ints sum, Words weights, const std::int32_t* pair) {
    return _mm512_add_epi32(sum, _mm512_madd_epi16(weights, _mm512_set1_epi32(*pair)));
  }
};

constexpr int tile_widths[] = {1, 2, 4, 8, 12};

}  // namespace

const Kernels kernels_avx512 = {
    .level = IsaLevel::avx512,
    .widths = tile_widths,
    .width_count = sizeof(tile_widths) / sizeof(tile_widths[0]),
    .panel_kernel = panel_kernel_among<Plain512, 1, 2, 4, 8, 12>,
    .expand_block = expand_block<Plain512>,
    .quantize = quantize<Plain512>,
    .normalize = normalize<Plain512>,
    .add_scaled = add_scaled<Plain512>,
    .activate = activate<Plain512>,
    .attend = attend<Plain512>,
    .widen = widen<Plain512>,
};

}  // namespace inferno::cpu
