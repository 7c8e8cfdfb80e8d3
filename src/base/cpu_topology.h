// Which CPUs belong to which core and which memory.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

namespace inferno {

// CPUs of this process's affinity mask. At least one.
std::vector<int> allowed_cpus();

// One CPU for each core among `cpus`, because hyperthreads share the arithmetic units that kernels saturate.
// All of them if that leaves at most two: often a virtual machine shows hyperthreads as cores, and memory
// bandwidth needs every thread. CPUs of one NUMA node are together; the node with the most is the first.
std::vector<int> one_for_each_core(std::span<const int> cpus,
                                   const std::filesystem::path& system = "/sys/devices/system");

// The CPUs that each of `threads` threads may run on, given those of one_for_each_core(): with a thread for
// each CPU, one of its own; with fewer, all of as few NUMA nodes as have enough, because other programs
// compute, too, and must not all meet on the first CPUs. Empty with more threads than CPUs: the kernel places
// them better.
std::vector<std::vector<int>> places_of(int threads, std::span<const int> cpus,
                                        const std::filesystem::path& system = "/sys/devices/system");

}  // namespace inferno
