// A checkpoint bound to a spec and packed for a backend.
#pragma once

#include <deque>
#include <string>
#include <variant>
#include <vector>

#include "backend/backend.h"
#include "checkpoint/checkpoint.h"
#include "model/architecture.h"

namespace inferno {

struct DenseWeights {
  Linear up, down;  // `up` is gate and up stacked when the MLP is gated
};

struct BlockWeights {
  Norm attention_norm;
  Linear qkv;
  AttentionWeights attention;
  Linear attention_out;
  Norm mlp_norm;  // empty in a parallel block
  std::variant<DenseWeights, MoeWeights> mlp;
};

struct ModelWeights {
  const Weight* embedding = nullptr;
  const Weight* positions = nullptr;  // null unless positions are learned
  std::vector<BlockWeights> blocks;
  Norm final_norm;
  Linear head;

  std::deque<Weight> packed;  // what the pointers above point to: a deque, so they stay valid
  std::vector<Buffer> memory;
};

struct LoadReport {
  std::uint64_t parameters = 0;
  std::uint64_t weight_bytes = 0;
  std::uint64_t token_bytes =
      0;  // of weights that decoding one token reads: active experts, the head, no table
  std::vector<std::string> notes;  // conversions and choices made while loading, one sentence each
};

struct BoundModel {
  ModelWeights weights;
  LoadReport report;
};

// Throws one Error naming every problem at once: tensors missing, tensors left over, shapes that
// disagree with the spec, and whatever the backend refuses. Nothing is read before all of it is checked.
BoundModel bind(const ModelSpec& spec, const Architecture& arch, const Checkpoint& checkpoint,
                Backend& backend);

}  // namespace inferno
