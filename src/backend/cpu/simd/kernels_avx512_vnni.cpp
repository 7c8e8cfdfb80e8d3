// The kernels for AVX-512 with VNNI, which multiplies and adds pairs in one instruction.
#include "backend/cpu/kernels.h"

#include "backend/cpu/simd/attend.h"
#include "backend/cpu/simd/elementwise.h"
#include "backend/cpu/simd/machine_avx512.h"
#include "backend/cpu/simd/multiply.h"

namespace inferno::cpu {
namespace {

struct Vnni512 : Avx512 {
  static Ints dot(Ints sum, Words weights, const std::int32_t* pair) {
    return _mm512_dpwssd_epi32(sum, weights, _mm512_set1_epi32(*pair));
  }
};

constexpr int tile_widths[] = {1, 2, 4, 8, 12};

}  // namespace

const Kernels kernels_avx512_vnni = {
    .level = IsaLevel::avx512_vnni,
    .widths = tile_widths,
    .width_count = sizeof(tile_widths) / sizeof(tile_widths[0]),
    .panel_kernel = panel_kernel_among<Vnni512, 1, 2, 4, 8, 12>,
    .expand_block = expand_block<Vnni512>,
    .quantize = quantize<Vnni512>,
    .normalize = normalize<Vnni512>,
    .add_scaled = add_scaled<Vnni512>,
    .activate = activate<Vnni512>,
    .attend = attend<Vnni512>,
};

}  // namespace inferno::cpu
