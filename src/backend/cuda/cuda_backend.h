// An NVIDIA GPU as a Backend. Operations are queued on one stream; only download() waits.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace inferno {

// make_cuda_backend() with activations and cache of another type than bf16: f32 is for tests, which can then
// tell a wrong kernel from a rounded number. It has no clusters, like devices before Hopper. Slow.
std::unique_ptr<Backend> make_cuda_backend(int device, DType activations);

}  // namespace inferno
