// How far results may lie from the reference, stated once. All are relative L2 errors.
#pragma once

namespace inferno::testing {

// Logits of a whole model in float32 arithmetic, weights as stored.
inline constexpr double float_weight_logits = 1e-3;
inline constexpr double quantized_weight_logits = 2e-3;

// The same tokens in other chunks or batches: only the order of additions may differ.
inline constexpr double parity_logits = 2e-5;

// TinyStories' perplexity, as a share.
inline constexpr double perplexity_share = 1e-3;

}  // namespace inferno::testing
