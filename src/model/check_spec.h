// What a config may claim: numbers that contradict each other, and keys that change the mathematics unheard.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/config.h"
#include "spec/model_spec.h"

namespace inferno {

// Contradictions and absurd sizes, one sentence each; empty when the decoder can be built.
std::vector<std::string> spec_problems(const ModelSpec& spec);

// Config keys that no family has read. `refused` change the mathematics as far as their name and value tell;
// `ignored` are unknown to us and reported; bookkeeping keys are in neither.
struct UnreadKeys {
  std::vector<std::string> refused, ignored;
};
UnreadKeys unread_keys(const Config& config);

}  // namespace inferno
