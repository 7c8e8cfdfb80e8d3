// What a model needs on a device, before its weights are read.
#pragma once

#include <optional>

#include "backend/backend.h"
#include "checkpoint/checkpoint.h"
#include "model/export/weight_types.h"
#include "model/footprint.h"

namespace inferno {

struct PlannedLoad {
  int context = 0;  // 0: the model's own
  int sequences = 1;
  std::optional<WeightFormat> quantize = {};  // to which float weights are rounded
  CacheChoice cache = {};
};

// For an engine with default steps. Error{invalid_request} for a context beyond the model's, and the errors
// of describe_model() and choose_cache_types().
Footprint plan_model(const Checkpoint& checkpoint, const Backend& backend, const PlannedLoad& load);

}  // namespace inferno
