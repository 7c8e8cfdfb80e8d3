// Background copies of boxes out of tensors that a map describes (Hopper): one instruction for a whole stage,
// where plain bulk copies cost some sixty cycles each. What lies outside of the tensor arrives as zeros. Only
// kernels that never start on older devices may call these.
#pragma once

#include <cuda.h>

#include "backend/cuda/device/bulk_copy.cuh"

namespace inferno::cuda {

// Coordinates: innermost first, as in the map, which lies in the kernel's arguments.
__device__ inline void tensor_copy(void* to, const CUtensorMap& map, int x, int y, Barrier* arrival) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3}], "
      "[%4];" ::"r"(shared_address(to)),
      "l"(&map), "r"(x), "r"(y), "r"(shared_address(arrival))
      : "memory");
#endif
}
__device__ inline void tensor_copy(void* to, const CUtensorMap& map, int x, int y, int z, Barrier* arrival) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
      "%4}], "
      "[%5];" ::"r"(shared_address(to)),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(shared_address(arrival))
      : "memory");
#endif
}

// Arrives once all cp.async of this thread so far have. The barrier counts on this arrival.
__device__ inline void arrive_after_copies(Barrier* barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier))
               : "memory");
#endif
}

}  // namespace inferno::cuda
