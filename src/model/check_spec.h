// Checks of a config: numbers that contradict each other, and keys that change the mathematics but were not
// read.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/config.h"
#include "spec/model_spec.h"

namespace inferno {

// Contradictions and absurd sizes, one sentence each; empty when the decoder can be built.
std::vector<std::string> spec_problems(const ModelSpec& spec);

// Config keys that no family has read. By their name and value, `refused` keys change the mathematics;
// `ignored` keys are unknown and reported; bookkeeping keys are in neither list.
struct UnreadKeys {
  std::vector<std::string> refused, ignored;
};
UnreadKeys unread_keys(const Config& config);

}  // namespace inferno
