// The CPU as a Backend. Work is done before an operation returns, in host memory, in float32.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/cpu/isa.h"

namespace inferno {

// make_cpu_backend() with the kernels of `level` instead of the best ones: for tests and for finding out
// whether a kernel is at fault. Error{unsupported} when this CPU or this build lacks the level.
std::unique_ptr<Backend> make_cpu_backend(int threads, cpu::IsaLevel level);

}  // namespace inferno
