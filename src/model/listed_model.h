// The spec of a model of which only a listing is known, such as a search result: enough for a footprint,
// never for loading.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "spec/model_spec.h"

namespace inferno {

// The spec that a complete config.json describes; nullopt if the text is incomplete or invalid, or its family
// is not supported.
std::optional<ModelSpec> spec_of_config(std::string_view json);

// A dense decoder as models of that size usually are: with 1, 8 and 70 billion parameters it has the width,
// depth and KV heads of Llama 3. Cache and workspace are mostly within a factor of two of a real model's.
// `context` 0: unknown, then 131072.
ModelSpec typical_spec(std::uint64_t parameters, std::uint64_t context);

}  // namespace inferno
