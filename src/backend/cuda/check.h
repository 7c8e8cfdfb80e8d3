// CUDA's error codes become Error{device}: one function instead of a macro at every call.
#pragma once

#include <cuda_runtime_api.h>

#include <source_location>

namespace inferno::cuda {

void check(cudaError_t status, std::source_location at = std::source_location::current());

}  // namespace inferno::cuda
