// Where kernels are launched: a stream and what the launch shapes need to know of the device behind it.
#pragma once

#include <cuda_runtime_api.h>

namespace inferno::cuda {

struct Queue {
  cudaStream_t stream = nullptr;
  int multiprocessors = 1;
  int shared_limit = 48 << 10;  // bytes of shared memory a block may ask for
  bool overlaps = false;        // a kernel may start while the one before it ends (Hopper and later)
  int max_cluster = 1;          // of attention, and so of all: max_decode_cluster(); 1 before Hopper
  bool warp_groups = false;     // wgmma: on Hopper, in a build for sm_90a
};

}  // namespace inferno::cuda
