// Rotary angles: how a spec's scaling turns into frequencies, and frequencies into the table that kernels
// read.
#pragma once

#include <vector>

#include "spec/model_spec.h"

namespace inferno {

struct RopeFrequencies {
  std::vector<double> inverse;    // radians per position, one for each rotated pair
  double attention_factor = 1.0;  // multiplies sines and cosines
};

// LongRoPE has two sets of factors. Hugging Face chooses by the length of each sequence; a batch mixes
// lengths, so we choose once, by the context the decoder is made for.
bool uses_long_factors(const LongRopeScaling& scaling, int context);

RopeFrequencies rope_frequencies(const Rope& rope, int context);

// f32 [context, dims]: for each position all cosines, then all sines.
std::vector<float> rope_table(const Rope& rope, int context);

}  // namespace inferno
