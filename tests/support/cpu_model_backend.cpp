#include "support/model_backend.h"
#include "tolerance.h"

namespace inferno::testing {

const ModelBackend& model_backend() {
  static const ModelBackend backend = {.make = make_cpu_backend,
                                       .float_weights = float_weight_logits,
                                       .quantized_weights = quantized_weight_logits,
                                       .decoded_weights = 1e-4,
                                       .parity = 0.0,  // the CPU promises the same bits
                                       .expert_parity = 0.0,
                                       .tie = 0.02f,
                                       .cache = DType::f32,
                                       .promises_bits = true};
  return backend;
}

}  // namespace inferno::testing
