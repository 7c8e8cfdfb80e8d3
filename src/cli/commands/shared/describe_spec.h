// A model's description as JSON, for `inspect --json` and for the printed page.
#pragma once

#include "chat/json_fwd.h"
#include "checkpoint/checkpoint.h"
#include "model/load.h"

namespace inferno {

Json describe_config(const Config& config);
Json describe_tensors(const Checkpoint& checkpoint);

// Every hyperparameter of the decoder; consecutive equal layers are one entry.
Json describe_spec(const ModelSpec& spec);

// Bytes of weights, workspace, and KV cache per token and for the full context.
Json describe_memory(const Footprint& footprint);

}  // namespace inferno
