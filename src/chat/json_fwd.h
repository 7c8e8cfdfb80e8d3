// The name of the JSON type, for headers that do not need the type itself: nlohmann's full header costs
// seconds in every translation unit.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace inferno {

// Keeps the order of keys, because Python's json does and templates print it.
using Json = nlohmann::ordered_json;

}  // namespace inferno
