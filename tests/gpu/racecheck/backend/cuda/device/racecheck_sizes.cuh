// Every lane arrives at a barrier for itself: see the file of this name in src.
#pragma once

namespace inferno::cuda {

constexpr int warp_arrivals = 32;

constexpr int sample_threads = 128, sample_most_blocks = 4;

}  // namespace inferno::cuda
