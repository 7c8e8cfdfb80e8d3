// A model of the hub's cache by any of its names, for commands that work on the cache itself.
#pragma once

#include <string>

#include "cli/model_discovery.h"
#include "hub/cache/scan.h"

namespace inferno {

struct CachedChoice {
  hub::CachedRepository repository;
  hub::ModelName wanted;  // with the revision and quantization that were asked for
};

// Error{not_found} when no cache has it; Error{unsupported} when it is there, but in a store that is only
// read.
CachedChoice find_cached_repository(const std::string& name, const Environment& environment);

}  // namespace inferno
