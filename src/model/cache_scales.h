// The scales of an FP8 KV cache that some quantized checkpoints have.
#pragma once

#include <vector>

#include "checkpoint/checkpoint.h"
#include "spec/model_spec.h"

namespace inferno {

struct CacheScales {
  std::vector<float> keys, values;  // one for each key head; empty: all are 1
};

// One for each layer. Error{corrupt} for a scale that is not a positive number, or scales that do not fit the
// heads.
std::vector<CacheScales> read_cache_scales(const ModelSpec& spec, const Checkpoint& checkpoint);

}  // namespace inferno
