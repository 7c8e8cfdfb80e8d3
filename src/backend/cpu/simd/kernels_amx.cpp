// The kernels for AMX, whose unit multiplies 16 tokens by 16 rows of weights in one instruction; all else is
// AVX-512 with VNNI.
#include "backend/cpu/kernels.h"

#include "backend/cpu/simd/machine_avx512_vnni.h"
#include "backend/cpu/simd/tile_products.h"
#include "backend/cpu/simd/tiles_amx.h"

namespace inferno::cpu {
namespace {

PanelKernel panel_kernel(WeightFormat format, int width) {
  const PanelKernel tiles = tile_kernel<Vnni512, AmxTiles>(format, width);
  return tiles != nullptr ? tiles : kernels_avx512_vnni.panel_kernel(format, width);
}

}  // namespace

const Kernels kernels_amx = {
    .level = IsaLevel::amx,
    .panel_kernel = panel_kernel,
    .tiles = &tile_unit<Vnni512, AmxTiles>,
};

}  // namespace inferno::cpu
