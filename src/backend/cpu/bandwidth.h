// How fast this machine reads memory: what the speed of decoding is measured against.
#pragma once

#include <cstddef>

namespace inferno::cpu {

// Bytes a second that `threads` threads read together from `bytes` of memory on huge pages: the best of a
// few passes. Take at least 1 GiB, so that caches do not help. Error{io} when there is not enough memory.
double read_bandwidth(int threads, std::size_t bytes);

}  // namespace inferno::cpu
