// The racecheck build's version of the file of this name in src: every lane arrives at an mbarrier itself,
// and a sixteenth of the threads sample a row.
#pragma once

namespace inferno::cuda {

constexpr int warp_arrivals = 32;

constexpr int sample_threads = 128, sample_max_blocks = 4;

}  // namespace inferno::cuda
