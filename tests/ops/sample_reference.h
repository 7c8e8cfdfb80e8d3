// Sampling as backend/sampling.h defines it, in double precision, by plain sorting.
#pragma once

#include <vector>

#include "backend/sampling.h"

namespace inferno::reference {

struct SampleCase {
  std::vector<float> logits;
  SamplingRow row;  // its ranges are empty; the lists are below
  std::vector<ListEntry> history, bias, allowed;
  std::vector<std::uint32_t> mask = {};  // mask_words(vocab); empty: none
  bool permits(int token) const {
    const auto at = static_cast<std::size_t>(token);
    return mask.empty() || (mask[at / 32] >> (at % 32) & 1u) != 0;
  }
};

// The precision of a draw: sums are computed in float, and logits may be rounded.
struct Rounding {
  double sums = 3e-6;
  double logits = 0.0;
};

// The token that must be drawn; several if a boundary is within the rounding error. -1: no token is left.
std::vector<int> possible_tokens(const SampleCase& c, const Rounding& rounding = {});

// The probabilities of the draw; empty if no token is left. With temperature 0 one token has probability 1.
std::vector<double> distribution(const SampleCase& c);

std::vector<double> logprobs(const std::vector<float>& logits);
std::vector<int> by_value(const std::vector<double>& values);  // indices, largest first, lowest among equals

}  // namespace inferno::reference
