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

// How exactly a draw is known: sums are taken in float, and logits may be known only to so much.
struct Rounding {
  double sums = 3e-6;
  double logits = 0.0;
};

// The token that must come out; several where a border lies within the rounding. -1: nothing is left.
std::vector<int> possible_tokens(const SampleCase& c, const Rounding& rounding = {});

// The probabilities that the token is drawn from; empty when nothing is left. Temperature 0: one token's
// is 1.
std::vector<double> distribution(const SampleCase& c);

std::vector<double> logprobs(const std::vector<float>& logits);
std::vector<int> by_value(const std::vector<double>& values);  // indices, largest first, lowest among equals

}  // namespace inferno::reference
