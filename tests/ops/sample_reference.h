// Sampling as backend/sampling.h defines it, in double precision, with nothing but sorting.
#pragma once

#include <vector>

#include "backend/sampling.h"

namespace inferno::reference {

struct SampleCase {
  std::vector<float> logits;
  SamplingRow row;  // its ranges are left empty; these are the lists
  std::vector<ListEntry> history, bias, allowed;
};

// The token that must come out; several where a border lies within the rounding of float sums. -1: nothing is
// left.
std::vector<int> possible_tokens(const SampleCase& c);

std::vector<double> logprobs(const std::vector<float>& logits);
std::vector<int> by_value(const std::vector<double>& values);  // indices, largest first, lowest among equals

}  // namespace inferno::reference
