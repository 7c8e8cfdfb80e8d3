// A sixteenth of the threads, so that racecheck gets through: see the file of this name in src.
#pragma once

namespace inferno::cuda {

constexpr int sample_threads = 128, sample_most_blocks = 4;

}  // namespace inferno::cuda
