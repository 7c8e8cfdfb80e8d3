// How fast the device reads its memory: what decoding is measured against.
#pragma once

#include "backend/cuda/memory.h"
#include "backend/cuda/queue.h"

namespace inferno::cuda {

// Bytes in a second, the best of a few readings of two gibibytes.
double read_bandwidth(const Queue& queue, DeviceMemory& memory);

}  // namespace inferno::cuda
