// How many threads draw a token together: blocks of a team, at most, and threads of each. racecheck takes
// seconds for each cluster barrier of such a team: a build for it has
// tests/gpu/racecheck/backend/cuda/kernels/sample_size.cuh instead, with fewer.
#pragma once

namespace inferno::cuda {

constexpr int sample_threads = 1024, sample_most_blocks = 8;

}  // namespace inferno::cuda
