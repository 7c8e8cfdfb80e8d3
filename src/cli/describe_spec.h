// Describes a model as JSON, for `inspect --json` and for the printed page of `inspect`.
#pragma once

#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.h"
#include "model/load.h"

namespace inferno {

using Json = nlohmann::ordered_json;

Json describe_config(const Config& config);
Json describe_tensors(const Checkpoint& checkpoint);

// Every hyperparameter as the decoder understood it; consecutive equal layers share an entry.
Json describe_spec(const ModelSpec& spec);

// Bytes: weights, cache for each token and for the whole context, workspace.
Json describe_memory(const Footprint& footprint);

}  // namespace inferno
