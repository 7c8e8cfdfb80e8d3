// One lane arrives at a barrier for its warp. racecheck knows an order only of threads that arrive
// themselves: a build for it has tests/gpu/racecheck/backend/cuda/device/warp_arrivals.cuh instead, where all
// lanes do.
#pragma once

namespace inferno::cuda {

constexpr int warp_arrivals = 1;

constexpr int sample_threads = 1024, sample_most_blocks = 8;

}  // namespace inferno::cuda
