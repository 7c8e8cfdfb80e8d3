// The backend that whole models are tested on, and its tolerances. One of cpu_model_backend.cpp,
// tile_model_backend.cpp, queueing_model_backend.cpp, cuda_model_backend.cpp and cuda_f32_model_backend.cpp
// is linked.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace inferno::testing {

struct ModelBackend {
  std::unique_ptr<Backend> (*make)(int threads);
  double float_weights, quantized_weights;  // relative L2 distance of logits from the reference
  double decoded_weights;                   // ... from those of the same weights as plain floats
  double parity;                            // ... from the same tokens in other chunks or batches
  double expert_parity;                     // ... if another expert may be chosen
  double rounded_cache, fp8_cache;          // ... from the reference, with a rounded KV cache
  double fp8_parity;                        // ... from other chunks with FP8; rounded_cache with other types
  float tie;                                // logits of a trained model closer than this may be swapped
  DType cache;
  bool promises_bits = false;  // the same bits in every batch
  bool is_simulated = false;   // too slow for large models
  double one_position =
      1.0;  // factor by which one position may exceed the tolerance of all positions together
  // Share of positions that may miss the tolerance in a mixture of experts, because rounding sent a token to
  // another expert. They are printed.
  double misrouted = 0.0;
};

const ModelBackend& model_backend();

}  // namespace inferno::testing
