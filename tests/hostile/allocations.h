// The memory that loading a file takes. Linking allocations.cpp replaces operator new.
#pragma once

#include <cstddef>

namespace inferno::allocations {

struct Cost {
  std::size_t largest = 0;  // bytes of the largest single allocation
  std::size_t peak = 0;     // maximum of allocated bytes at any time, relative to the start
};

// Counts for one thread; the tests have no other.
void start();
Cost stop();

}  // namespace inferno::allocations
