// Matrix products, and the same with an activation behind them.
// Launchers queue work and return; none allocates or waits. Shapes as in backend.h.
#pragma once

#include <cstdint>
#include <span>

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
constexpr int gemv_max_tokens = 8;
constexpr int gemv_max_parts = 4;
bool has_gemv(const WeightView& weight);
void gemv(const Queue& queue, std::span<const WeightView> parts, const Product& product);

// out[r] = act(gate, up): without experts for each token, otherwise for each choice. `in` may be f32 with
// experts. Combined: out[token] = sum over its choices of share * (down + bias).
void gemv_gated(const Queue& queue, std::span<const WeightView> gate_up, const Product& product,
                const Chosen& chosen, const ActivationSpec& activation);
bool gemv_takes_gated(std::span<const WeightView> gate_up, int hidden);  // whether gemv_gated() does
bool gemv_takes(const WeightView& down, int active);                     // whether gemv_combined() does
void gemv_combined(const Queue& queue, const WeightView& down, const Product& product, const Chosen& chosen);

constexpr int gemm_rows = 128;
// What gemm() reads as it is.
inline bool is_decoded(const WeightView& weight) {
  return weight.format == WeightFormat::bf16 && weight.layout == Layout::tiled;
}
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
  // gemv_max_parts at most.
  std::span<const WeightView> parts = {};

  // What gemm_gated() fills in.
  const ActivationSpec* activation = nullptr;
  const std::byte* up = nullptr;
  std::int32_t rows_between = 0;  // from one expert's rows to the next one's; 0: `rows`, in whole tiles
};
void gemm(const Queue& queue, const GemmCall& call);
void gemm_hopper(const Queue& queue, const GemmCall& call);  // what gemm() takes where there are warp groups
// out [tokens, hidden] = act(gate, up), of bf16 weights in tiles: one of 2 * hidden rows or two of hidden.
// The call says everything but the weights; its bias is that of all 2 * hidden rows.
bool gemm_takes_gated(const Queue& queue, std::span<const WeightView> gate_up, int hidden,
                      const ActivationSpec& activation);
void gemm_gated(const Queue& queue, std::span<const WeightView> gate_up, GemmCall call,
                const ActivationSpec& activation);

// What gemv() does, for more tokens: one matrix of several parts, no experts.
bool grouped_takes(const Queue& queue, const WeightView& weight, Matrix out);
void grouped_linear(const Queue& queue, std::span<const WeightView> parts, const Product& product);

}  // namespace inferno::cuda
