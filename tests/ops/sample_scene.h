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

// Random settings and lists.
reference::SampleCase random_sample_case(int vocab, std::uint64_t seed);

}  // namespace inferno
