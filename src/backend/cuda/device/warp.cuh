// Reductions over a warp and over a block, in a fixed order.
#pragma once

#include <cuda_runtime.h>

namespace inferno::cuda {

constexpr unsigned full_warp = 0xFFFFFFFFu;

__device__ inline float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(full_warp, value, offset);
  return value;
}

__device__ inline float warp_max(float value) {
  for (int offset = 16; offset > 0; offset >>= 1) {
    value = fmaxf(value, __shfl_xor_sync(full_warp, value, offset));
  }
  return value;
}

// `smem` holds one float per warp of the block (at most 32). Every thread gets the sum.
__device__ inline float block_sum(float value, float* smem) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = (blockDim.x + 31) / 32;
  value = warp_sum(value);
  __syncthreads();  // all reads of the previous call are done
  if (lane == 0) smem[warp] = value;
  __syncthreads();
  return warp_sum(lane < warps ? smem[lane] : 0.0f);
}

}  // namespace inferno::cuda
