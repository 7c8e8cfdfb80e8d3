// Hopper's asynchronous copies from global to shared memory (TMA) and the mbarriers that producer and
// consumer warps synchronize on. Only kernels for sm_90 and later may call these.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "backend/cuda/device/ptx.cuh"
#include "backend/cuda/device/racecheck_sizes.cuh"

namespace inferno::cuda {

using Mbarrier = std::uint64_t;  // in shared memory

// Before the first use by TMA: fence_proxy_async(), then a barrier of the threads.
__device__ inline void mbarrier_init(Mbarrier* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
               : "memory");
}

__device__ inline void mbarrier_arrive(Mbarrier* barrier) {
  if constexpr (has_sm90) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
  } else {
    wrong_architecture();
  }
}

// One arrival for a warp whose lanes have all finished, so after __syncwarp().
__device__ inline void mbarrier_arrive_warp(Mbarrier* barrier, int lane) {
  if (warp_arrivals > 1 || lane == 0) mbarrier_arrive(barrier);
}

// Arrives, and keeps the phase open until that many bytes have been copied.
__device__ inline void mbarrier_arrive_expect_tx(Mbarrier* barrier, std::uint32_t bytes) {
  if constexpr (has_sm90) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
  } else {
    wrong_architecture();
  }
}

// May suspend the thread for a while; returns whether the phase of this parity has completed.
__device__ inline bool mbarrier_try_wait(Mbarrier* barrier, std::uint32_t parity) {
  std::uint32_t completed = 1;
  if constexpr (has_sm90) {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
        : "=r"(completed)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  } else {
    wrong_architecture();
  }
  return completed != 0;
}
__device__ inline bool mbarrier_test_wait(Mbarrier* barrier, std::uint32_t parity) {
  std::uint32_t completed = 1;
  if constexpr (has_sm90) {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
        : "=r"(completed)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  } else {
    wrong_architecture();
  }
  return completed != 0;
}
__device__ inline void mbarrier_wait(Mbarrier* barrier, std::uint32_t parity) {
  while (!mbarrier_try_wait(barrier, parity)) {}
}

// For weights, which are read once per step: they leave L2 first, so that code, arguments and small operands
// stay.
__device__ inline std::uint64_t evict_first_policy() {
  std::uint64_t policy = 0;
  if constexpr (has_sm90) {
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  } else {
    wrong_architecture();
  }
  return policy;
}

// For data that many blocks read.
__device__ inline std::uint64_t evict_normal_policy() {
  std::uint64_t policy = 0;
  if constexpr (has_sm90) {
    asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  } else {
    wrong_architecture();
  }
  return policy;
}

// Addresses and size must be multiples of 16.
__device__ inline void bulk_copy(void* to, const void* from, std::uint32_t bytes, Mbarrier* full,
                                 std::uint64_t policy) {
  if constexpr (has_sm90) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, "
        "[%3], %4;" ::"r"(shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(full)), "l"(policy)
        : "memory");
  } else {
    wrong_architecture();
  }
}

// A box of a tensor map: one instruction for a whole stage, where bulk copies cost some sixty cycles each.
// Coordinates are innermost first. Elements outside of the tensor arrive as zeros. The map must be a
// __grid_constant__ kernel argument.
__device__ inline void tensor_copy(void* to, const CUtensorMap& map, int x, int y, Mbarrier* full) {
  if constexpr (has_sm90) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
        "%3}], "
        "[%4];" ::"r"(shared_address(to)),
        "l"(&map), "r"(x), "r"(y), "r"(shared_address(full))
        : "memory");
  } else {
    wrong_architecture();
  }
}
__device__ inline void tensor_copy(void* to, const CUtensorMap& map, int x, int y, int z, Mbarrier* full) {
  if constexpr (has_sm90) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
        "%3, "
        "%4}], "
        "[%5];" ::"r"(shared_address(to)),
        "l"(&map), "r"(x), "r"(y), "r"(z), "r"(shared_address(full))
        : "memory");
  } else {
    wrong_architecture();
  }
}

// Arrives when all earlier cp.async of this thread have completed. The arrival count must include it.
__device__ inline void mbarrier_arrive_after_cp_async(Mbarrier* barrier) {
  if constexpr (has_sm90) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier))
                 : "memory");
  } else {
    wrong_architecture();
  }
}

// A position in a ring of stages: the stage, and the parity of the phase to wait for there.
struct PipelineState {
  int stage = 0;
  std::uint32_t parity = 0;
  __device__ void advance(int stages) {
    if (++stage == stages) {
      stage = 0;
      parity ^= 1u;
    }
  }
};

}  // namespace inferno::cuda
