// Mixtures of experts: routing, sorting of choices, products of sorted tokens, and their sum.
// Launchers queue work and return; none allocates or waits. Shapes as in backend.h.
#pragma once

#include <cstdint>
#include <span>

#include "backend/cuda/kernels/experts/choices.h"
#include "backend/cuda/kernels/linear/linear.h"

namespace inferno::cuda {

// Like gemm(), directly from MXFP4 tiles, on Hopper. A tile of the sorted choices has at most coded_rows
// places; rows of `in` and `out` are in order of places. Each 64 columns of `in` are in the order that
// arrange_choices() and coded_gated() write.
struct CodedProduct {
  Matrix out, in;
  const float* bias = nullptr;
  std::int64_t bias_stride = 0;
  const Sorted* sorted = nullptr;
  std::int32_t tiles = 0;
};
// out [choices, cols], bf16: for each choice its token's row of `in`.
void arrange_choices(const Queue& queue, Matrix out, Matrix in, const Sorted& sorted, int active);
void coded_gated(const Queue& queue, std::span<const WeightView> gate_up, const CodedProduct& product,
                 const ActivationSpec& activation);
void coded_plain(const Queue& queue, const WeightView& weight, const CodedProduct& product);  // f32 results

// Products of a few dozen tokens directly from tiles, on Hopper and later. A group is a tile of the sorted
// choices with at most `group` places; results are in order of places. Inputs are bf16; for MXFP4 inputs and
// gated results may also be f16.
struct GroupedProduct {
  Matrix out, in;
  const float* factors = nullptr;  // of each row of `in`; null: 1
  const float* bias = nullptr;
  std::int64_t bias_stride = 0;
  const Sorted* sorted = nullptr;
  std::int32_t groups = 0, group = 8;
  bool gathers = false;  // `in` is read through sorted->tokens
};
void grouped_gated(const Queue& queue, std::span<const WeightView> gate_up, const GroupedProduct& product,
                   const ActivationSpec& activation);
// Must directly follow grouped_gated() of the same groups: it reads the groups before that kernel has ended.
void grouped_plain(const Queue& queue, const WeightView& weight, const GroupedProduct& product);

// Chooses the largest logits of each row of f32 [tokens, experts]; of equal logits, the lower expert first.
constexpr int max_active_experts = 32;
void route(const Queue& queue, std::int32_t* experts, float* shares, Matrix logits, const MoeMlp& spec);
// Computes the router's logits too, and rounds the rows that it reads to two bytes for each element: to bf16,
// or to f16 with a factor for each row, a power of two.
struct RoutedRows {
  Matrix in, narrow = {};
  float* factors = nullptr;     // [tokens]; used if narrow is f16
  const float* bias = nullptr;  // of the router
  std::int32_t* experts = nullptr;
  float* shares = nullptr;
};
void route_rows(const Queue& queue, const RoutedRows& rows, const WeightView& router, const MoeMlp& spec);
// The same for many tokens, without rounding: `narrow` and `factors` are not used.
void route_many(const Queue& queue, const RoutedRows& rows, const WeightView& router, const MoeMlp& spec);
// Tiles of at most `rows` places, max_tiles() in all: in order of experts, or roughly the largest first, so
// that blocks that take one tile after another end together.
struct TileOrder {
  int rows = gemm_rows;
  bool by_size = false;
};
void sort_choices(const Queue& queue, const Sorted& sorted, const Chosen& chosen, int experts,
                  const TileOrder& order);
// The results of experts: choice (t, k) is row places[t, k], or row t * active + k if places is null.
struct MixedRows {
  Matrix rows;
  const float* shares = nullptr;
  const std::int32_t* places = nullptr;
  int active = 0;
};
// out[t] = sum over k of shares[t, k] * rows[place of (t, k)]
void combine(const Queue& queue, Matrix out, const MixedRows& mixed);
// The same as a branch that is added to the residual stream before the norm.
void combine_add_norm(const Queue& queue, Matrix out, Matrix residual, const MixedRows& mixed, float scale,
                      const Norm& norm);

}  // namespace inferno::cuda
