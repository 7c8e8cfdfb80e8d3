// A checkpoint bound to a spec and packed for a backend.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "backend/backend.h"
#include "checkpoint/checkpoint.h"
#include "model/cache_scales.h"
#include "model/tensor_plan.h"

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

  std::vector<Weight> packed;  // targets of the pointers above: never resized after binding
  std::vector<Buffer> memory;
};

// A tensor that does not reach the kernels as its file stores it.
struct Conversion {
  std::string tensor, change, why;
};

struct BoundModel {
  ModelWeights weights;
  std::vector<Conversion> conversions;
};

// Finds every weight of the spec without reading any. Error{corrupt} naming all problems at once: tensors
// missing, tensors left over, shapes that disagree with the spec, and what the backend refuses.
TensorPlan plan_weights(const ModelSpec& spec, const Architecture& arch, const Checkpoint& checkpoint,
                        const Backend& backend);

// Reads and packs the weights of a plan. `scales` has those of every layer, or none. Error{corrupt} when a
// file was written to meanwhile.
BoundModel bind(const ModelSpec& spec, const TensorPlan& plan, std::span<const CacheScales> scales,
                Backend& backend);

}  // namespace inferno
