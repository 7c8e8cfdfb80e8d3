// The kernels for AMX with a unit in plain C++: the same code on machines without it, for tests.
#include "backend/cpu/kernels.h"

#include "backend/cpu/simd/machine_avx512_vnni.h"
#include "backend/cpu/simd/tile_products.h"
#include "backend/cpu/simd/tiles_model.h"

namespace inferno::cpu {
namespace {

PanelKernel panel_kernel(WeightFormat format, int width) {
  const PanelKernel tiles = tile_kernel<Vnni512, ModelTiles>(format, width);
  return tiles != nullptr ? tiles : kernels_avx512_vnni.panel_kernel(format, width);
}

}  // namespace

const Kernels kernels_amx_model = {
    .level = IsaLevel::amx_model,
    .panel_kernel = panel_kernel,
    .tiles = &tile_unit<Vnni512, ModelTiles>,
};

}  // namespace inferno::cpu
