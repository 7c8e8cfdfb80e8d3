// How often the CUDA runtime was asked for memory. The linker sends every call in the program here
// (--wrap=cudaMalloc and so on), so nothing can allocate past the count.
#pragma once

#include <atomic>

namespace inferno::testing {

struct Allocations {
  std::atomic<int> device = 0;  // cudaMalloc and its relatives
  std::atomic<int> pinned = 0;  // host memory that the device reads
};
Allocations& allocations();

}  // namespace inferno::testing
