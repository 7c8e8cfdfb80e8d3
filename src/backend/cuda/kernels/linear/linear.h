// Matrix products, and products followed by an activation.
// Launchers queue work and return; none allocates or waits. Shapes as in backend.h.
#pragma once

#include <cstdint>
#include <span>

#include "backend/cuda/dispatch/shapes.h"
#include "backend/cuda/kernels/experts/choices.h"
#include "backend/cuda/kernels/linear/weights.h"

namespace inferno::cuda {

// out[r, column + i] = in[r'] * weight[e][i] + bias[e][column + i] for the weight's rows i. Without experts
// r' is r and e is 0; with them every row is one choice of a token: r' = r / in_divisor, e = experts[r].
struct Product {
  Matrix out, in;
  std::int32_t column = 0;
  const float* bias = nullptr;  // may be null
  std::int64_t bias_stride = 0;
  const std::int32_t* experts = nullptr;
  std::int32_t in_divisor = 1;
};
void linear_generic(const Queue& queue, const WeightView& weight, const Product& product);

// The memory-bound kernel for a few tokens, bf16 activations: parts of one format, whose columns follow one
// another from product.column on.
void gemv(const Queue& queue, std::span<const WeightView> parts, const Product& product);

// out[r] = act(gate, up): without experts for each token, otherwise for each choice. `in` may be f32 with
// experts. Combined: out[token] = sum over its choices of share * (down + bias).
void gemv_gated(const Queue& queue, std::span<const WeightView> gate_up, const Product& product,
                const Chosen& chosen, const ActivationSpec& activation);
void gemv_combined(const Queue& queue, const WeightView& down, const Product& product, const Chosen& chosen);

// Weights are bf16 [rows, cols] in tiles, of `experts` from first_expert on when sorted.
struct GemmCall {
  Matrix out, in;
  std::int32_t column = 0;
  const float* bias = nullptr;
  std::int64_t bias_stride = 0;
  const std::byte* weight = nullptr;
  std::int32_t rows = 0, cols = 0;
  const Sorted* sorted = nullptr;
  std::int32_t tiles = 0, first_expert = 0, experts = 1;
  bool gathers = false;  // in is read through sorted->tokens
  // Instead of `weight` and `rows`, unless sorted: matrices whose columns of `out` follow one another,
  // at most gemv_max_parts.
  std::span<const WeightView> parts = {};

  // Set by gemm_hopper_gated().
  const ActivationSpec* activation = nullptr;
  const std::byte* up = nullptr;
  std::int32_t rows_between = 0;  // from one expert's rows to the next one's; 0: `rows`, in whole tiles
};
void gemm(const Queue& queue, const GemmCall& call);
void gemm_hopper(const Queue& queue, const GemmCall& call);  // the same with warp groups
// out [tokens, hidden] = act(gate, up), of bf16 weights in tiles: one of 2 * hidden rows or two of hidden.
// The call says everything but the weights; its bias is that of all 2 * hidden rows.
void gemm_hopper_gated(const Queue& queue, std::span<const WeightView> gate_up, GemmCall call,
                       const ActivationSpec& activation);

// What gemv() does, for more tokens: one matrix of several parts, no experts.
void grouped_linear(const Queue& queue, std::span<const WeightView> parts, const Product& product);

}  // namespace inferno::cuda
