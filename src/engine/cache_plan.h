// How large the paged cache becomes: decided before anything is allocated.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/engine_options.h"
#include "engine/kv_blocks.h"
#include "spec/model_spec.h"
#include "tensor/matrix.h"

namespace inferno {

struct CachePlan {
  std::vector<CacheGroup> groups;  // in the order of window_groups()
  std::size_t bytes = 0;
  int context = 0;  // tokens one sequence may have: the decoder's, or fewer when the cache is smaller
};

// `context` tokens for each of options.max_sequences where memory allows, else the same share of that for
// every group. Error{io} with the numbers when not even the windows of one sequence fit.
CachePlan plan_cache(const ModelSpec& spec, DType type, const EngineOptions& options, int context,
                     std::size_t free_bytes);

}  // namespace inferno
