// Runs rows of logits with their settings through Backend::sample.
#pragma once

#include <vector>

#include "backend/sampling.h"
#include "ops/sample_reference.h"
#include "support/device.h"

namespace inferno {

struct SampleResult {
  SampleHead head;
  std::vector<ListEntry> alternatives;
};

// One row for each case, in one call. All have the same vocabulary.
std::vector<SampleResult> run_samples(Device& device, const std::vector<reference::SampleCase>& cases);

// Few, some, most or all tokens; bits past the vocabulary are random too.
std::vector<std::uint32_t> random_mask(int vocab, Random& random);

// Random settings and lists, without a mask.
reference::SampleCase random_sample_case(int vocab, std::uint64_t seed);

// Expects that a result reports the log probabilities of the case's logits, without filters and mask.
void expect_own_logprobs(const reference::SampleCase& sample, const SampleResult& result);

}  // namespace inferno
