// A stream that kernels are launched on, and the traits of its device.
#pragma once

#include <cuda_runtime_api.h>

#include "backend/cuda/dispatch/device_traits.h"

namespace inferno::cuda {

struct Queue : DeviceTraits {
  cudaStream_t stream = nullptr;
};

}  // namespace inferno::cuda
