// Hopper's background copies from global to shared memory, and the barriers that say when they have arrived
// and when their room is free again. Only kernels that never start on older devices may call these.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "backend/cuda/device/ptx.cuh"
#include "backend/cuda/device/racecheck_sizes.cuh"

namespace inferno::cuda {

using Barrier = std::uint64_t;  // in shared memory

__device__ inline void start_barrier(Barrier* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
               : "memory");
}

// Makes barriers just started visible to the copy engine; the threads still have to synchronize.
__device__ inline void publish_barriers() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

__device__ inline void arrive(Barrier* barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
#endif
}

// For a warp whose lanes are all done, as they are behind __syncwarp.
__device__ inline void arrive_as_warp(Barrier* barrier, int lane) {
  if (warp_arrivals > 1 || lane == 0) arrive(barrier);
}

// Arrives, and holds the phase open until so many bytes have come.
__device__ inline void arrive_expecting(Barrier* barrier, std::uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(bytes)
               : "memory");
#endif
}

__device__ inline bool has_passed(Barrier* barrier, std::uint32_t parity) {
  std::uint32_t passed = 1;
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
      : "=r"(passed)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
#endif
  return passed != 0;
}
// The same without waiting at all.
__device__ inline bool has_passed_already(Barrier* barrier, std::uint32_t parity) {
  std::uint32_t passed = 1;
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n.reg .pred p;\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
      : "=r"(passed)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
#endif
  return passed != 0;
}
__device__ inline void wait(Barrier* barrier, std::uint32_t parity) {
  while (!has_passed(barrier, parity)) {}
}

// For data that is read once: it leaves the L2 cache first, so that what every kernel needs again (its code
// and arguments, small operands) stays there.
__device__ inline std::uint64_t read_once_policy() {
  std::uint64_t policy = 0;
#if __CUDA_ARCH__ >= 900
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
#endif
  return policy;
}

// For data that many blocks read.
__device__ inline std::uint64_t read_again_policy() {
  std::uint64_t policy = 0;
#if __CUDA_ARCH__ >= 900
  asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
#endif
  return policy;
}

// Addresses and size are multiples of 16.
__device__ inline void bulk_copy(void* to, const void* from, std::uint32_t bytes, Barrier* arrival,
                                 std::uint64_t policy) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, "
      "[%3], %4;" ::"r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(arrival)), "l"(policy)
      : "memory");
#endif
}

// A stage of a ring, and the parity of the phase that is waited for there.
struct RingPlace {
  int stage = 0;
  std::uint32_t parity = 0;
  __device__ void advance(int stages) {
    if (++stage == stages) {
      stage = 0;
      parity ^= 1u;
    }
  }
};

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
