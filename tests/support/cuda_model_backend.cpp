// CUDA as users run it: activations and KV cache are bf16.
#include "support/model_backend.h"
#include "tolerance.h"

namespace inferno::testing {

const ModelBackend& model_backend() {
  static const ModelBackend backend = {.make = [](int) { return make_cuda_backend(0); },
                                       .float_weights = bf16_activation_logits,
                                       .quantized_weights = bf16_activation_logits,
                                       .decoded_weights = bf16_activation_logits,
                                       .parity = bf16_parity_logits,
                                       .expert_parity = 0.2,
                                       .rounded_cache = bf16_rounded_cache_logits,
                                       .fp8_cache = bf16_fp8_cache_logits,
                                       .fp8_parity = bf16_fp8_parity_logits,
                                       .tie = 0.25f,
                                       .cache = DType::bf16,
                                       .one_position = bf16_position_logits / bf16_activation_logits,
                                       .misrouted = 0.05};
  return backend;
}

}  // namespace inferno::testing
