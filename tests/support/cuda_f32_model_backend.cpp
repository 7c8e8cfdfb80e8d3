// CUDA with float activations: rounding cannot hide an error.
#include "backend/cuda/cuda_backend.h"
#include "support/model_backend.h"
#include "tolerance.h"

namespace inferno::testing {

const ModelBackend& model_backend() {
  static const ModelBackend backend = {.make = [](int) { return make_cuda_backend(0, DType::f32); },
                                       .float_weights = quantized_weight_logits,
                                       .quantized_weights = quantized_weight_logits,
                                       .decoded_weights = 1e-4,
                                       .parity = parity_logits,
                                       .expert_parity = parity_logits,
                                       .rounded_cache = rounded_cache_logits,
                                       .fp8_cache = rounded_cache_logits,
                                       .fp8_parity = rounded_cache_logits,
                                       .tie = 0.02f,
                                       .cache = DType::f32};
  return backend;
}

}  // namespace inferno::testing
