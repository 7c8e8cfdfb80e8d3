// Blocks that run together and reach each other's shared memory (Hopper and later). On older devices none of
// this may be called: launch() asks for clusters only where Queue::max_cluster says that there are some.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backend/cuda/device/ptx.cuh"

namespace inferno::cuda {

// Every thread of every block of the cluster that has not ended must arrive before anyone's wait returns.
// What was stored before the arrival, here or in another block, is then seen by all.
__device__ inline void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
__device__ inline void cluster_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

// Where the same variable lies in block `rank` of the cluster.
__device__ inline std::uint32_t in_block(const void* shared, int rank) {
  std::uint32_t there = 0;
#if __CUDA_ARCH__ >= 900
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(shared)), "r"(rank));
#else
  (void)shared, (void)rank;
#endif
  return there;
}
__device__ inline void store_there(std::uint32_t there, float4 value) {
#if __CUDA_ARCH__ >= 900
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(there), "f"(value.x), "f"(value.y),
               "f"(value.z), "f"(value.w)
               : "memory");
#else
  (void)there, (void)value;
#endif
}

__device__ inline void store_there(std::uint32_t there, std::uint32_t value) {
#if __CUDA_ARCH__ >= 900
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(there), "r"(value) : "memory");
#else
  (void)there, (void)value;
#endif
}

}  // namespace inferno::cuda
