// Weights from their files into device memory: read by several threads, sent through pinned memory, put into
// the kernels' layout on the device.
#pragma once

#include <span>

#include "backend/cuda/pack.h"
#include "backend/weight_source.h"

namespace inferno::cuda {

// threads 0: as many as help. Waits until everything is there.
void load_weights(const Queue& queue, Packer& packer, DeviceMemory& memory, std::span<Weight> to,
                  std::span<const WeightSource> from, int threads);

}  // namespace inferno::cuda
