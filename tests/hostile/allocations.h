// What a load costs in memory. Linking allocations.cpp replaces the program's operator new.
#pragma once

#include <cstddef>

namespace inferno::allocations {

struct Cost {
  std::size_t largest = 0;  // bytes of the largest single allocation
  std::size_t peak = 0;     // most bytes alive at once, beyond those alive at the start
};

// Counting is for one thread: the tests have no other.
void start();
Cost stop();

}  // namespace inferno::allocations
