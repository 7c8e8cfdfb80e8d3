// Thread block clusters and distributed shared memory (sm_90 and later). launch() requests clusters only if
// Queue::max_cluster allows them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backend/cuda/device/ptx.cuh"

namespace inferno::cuda {

// A wait returns when every thread of the cluster that has not exited has arrived. Stores before an arrival,
// also remote ones, are visible to all threads after the wait.
__device__ inline void cluster_arrive() {
  if constexpr (has_sm90) {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  } else {
    wrong_architecture();
  }
}
__device__ inline void cluster_wait() {
  if constexpr (has_sm90) {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  } else {
    wrong_architecture();
  }
}

// The address of the same variable in block `rank` of the cluster (mapa).
__device__ inline std::uint32_t remote_address(const void* shared, int rank) {
  std::uint32_t remote = 0;
  if constexpr (has_sm90) {
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared_address(shared)), "r"(rank));
  } else {
    wrong_architecture();
  }
  return remote;
}
__device__ inline void store_remote(std::uint32_t remote, float4 value) {
  if constexpr (has_sm90) {
    asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(remote), "f"(value.x),
                 "f"(value.y), "f"(value.z), "f"(value.w)
                 : "memory");
  } else {
    wrong_architecture();
  }
}
__device__ inline void store_remote(std::uint32_t remote, std::uint32_t value) {
  if constexpr (has_sm90) {
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(remote), "r"(value) : "memory");
  } else {
    wrong_architecture();
  }
}

}  // namespace inferno::cuda
