// How much results may differ from the reference, defined in one place. All are relative L2 distances.
#pragma once

#include "tensor/matrix.h"

namespace inferno {

// One operation, by the type that activations (or the cache) are kept in. f32 leaves room for another order
// of summation and nothing more.
constexpr double relative_tolerance(DType type) {
  switch (type) {
    case DType::f32: return 1e-4;
    case DType::f16: return 2e-3;
    case DType::bf16: return 1e-2;
    // Results are compared with a reference that rounds in the same way.
    case DType::q8_0:
    case DType::f8_e4m3: return 1e-6;
    case DType::i32: return 0.0;
  }
  return 0.0;
}

// Logits of a whole model with float activations.
inline constexpr double float_weight_logits = 1e-3;
inline constexpr double quantized_weight_logits = 2e-3;
// ... of quantized safetensors, whose references use the same weights. A misread layout is 0.2 or more away.
inline constexpr double published_weight_logits = 5e-4;
// ... with a rounded KV cache, where some keys fall on the other side of a rounding. Float activations
// are 3.01e-3 away at most, those of 16 bits 6.1e-3, and a cache that is not rounded up to 8e-2.
inline constexpr double rounded_cache_logits = 3.2e-3;
inline constexpr double rounded_twice_logits = 8e-3;
// With bf16 activations, summed in float.
inline constexpr double bf16_activation_logits = 1.5e-2;
// ... of a single position, whose logits may be shorter than those of its neighbours.
inline constexpr double bf16_position_logits = 2.5e-2;
// ... with a rounded KV cache, in which more keys fall on the other side: at most 1.5e-2 were measured, and
// 3.8e-2 with FP8, whose steps are larger.
inline constexpr double bf16_rounded_cache_logits = 2.5e-2;
inline constexpr double bf16_fp8_cache_logits = 4e-2;
// ... between two results with FP8: 5.2e-2 was measured in a tiny variant. There and in another one, weights
// off by up to 2^-9 move the last logits by 2e-2 to 1e-1 on the CPU, too.
inline constexpr double bf16_fp8_parity_logits = 5.6e-2;
// ... between two such results, each rounded in its own way.
inline constexpr double bf16_parity_logits = 2.1e-2;

// The same tokens in other chunks or batches, on a backend that does not promise the same bits. (The CPU
// does.)
inline constexpr double parity_logits = 2e-4;

}  // namespace inferno
