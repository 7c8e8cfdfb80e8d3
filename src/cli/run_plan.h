// What running a model takes on a device, from its headers alone: the same sums that loading it would make.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "checkpoint/checkpoint.h"
#include "model/load.h"

namespace inferno {

struct RunWish {
  int context = 0;  // 0: the model's own
  int batch = 1;    // sequences at once
};

struct RunPlan {
  std::uint64_t parameters = 0, weights = 0;  // bytes of weights
  std::uint64_t token_bytes = 0;              // of weights that one token reads
  std::uint64_t cache_token_bytes = 0;     // that one token adds to the cache, in layers that see everything
  std::uint64_t cache = 0, workspace = 0;  // at `context`
  std::uint64_t available = 0;             // of the device
  int context = 0, batch = 1;              // as wished
  int model_context = 0;
  int max_context = 0;  // that fits beside the weights, at this batch; 0: the weights alone do not fit

  std::uint64_t total() const { return weights + cache + workspace; }
  bool fits() const { return max_context >= context; }
  // Bytes that decoding reads for one token, `depth` tokens into a sequence.
  std::uint64_t read_per_token(int depth) const;
  std::vector<std::pair<int, std::uint64_t>> windows = {};  // {window or 0, cache bytes of a token there}
};

// Error{corrupt} or Error{unsupported} when the model cannot be run at all, Error{invalid_request} for a
// context longer than the model's. The engine gives half of what is free after loading to the cache; so does
// this.
RunPlan plan_run(const Checkpoint& checkpoint, const ModelPlan& model, const Backend& backend,
                 const RunWish& wish);

}  // namespace inferno
