// The CPU as a Backend: operations finish before they return, in host memory, in float32.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/cpu/host.h"
#include "base/system_memory.h"

namespace inferno {

// make_cpu_backend() with the kernels of `level` instead of the best ones, and the memory that `roots` shows:
// for tests and for finding out whether a kernel is at fault. Error{unsupported} if this CPU or this build
// lacks the level.
std::unique_ptr<Backend> make_cpu_backend(int threads, cpu::IsaLevel level, const SystemRoots& roots = {});

}  // namespace inferno
