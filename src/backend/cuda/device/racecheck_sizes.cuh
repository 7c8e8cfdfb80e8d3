// Constants that the racecheck build replaces (tests/gpu/racecheck has a file of this name).
#pragma once

namespace inferno::cuda {

// Arrivals of a warp at an mbarrier: one lane arrives for all. racecheck tracks order only for threads that
// arrive themselves, so in its build all lanes do.
constexpr int warp_arrivals = 1;

// Threads of a block and blocks of a cluster that sample a row. racecheck takes seconds for each cluster
// barrier of that many threads.
constexpr int sample_threads = 1024, sample_max_blocks = 8;

}  // namespace inferno::cuda
