// Tolerances for whole models on the CPU, also if another backend wraps the CPU backend.
#pragma once

#include "support/model_backend.h"
#include "tolerance.h"

namespace inferno::testing {

inline ModelBackend cpu_promises(std::unique_ptr<Backend> (*make)(int threads)) {
  return {.make = make,
          .float_weights = float_weight_logits,
          .quantized_weights = quantized_weight_logits,
          .decoded_weights = 1e-4,
          .parity = 0.0,  // the CPU promises the same bits
          .expert_parity = 0.0,
          .rounded_cache = 0.0,
          .fp8_cache = 0.0,
          .fp8_parity = 0.0,
          .tie = 0.02f,
          .cache = DType::f32,
          .promises_bits = true};
}

}  // namespace inferno::testing
