// Mixtures of experts: routing, sorting of choices, products of sorted tokens, and their sum.
// Launchers queue work and return; none allocates or waits. Shapes as in backend.h.
#pragma once

#include <cstdint>
#include <span>

#include "backend/cuda/kernels/experts/choices.h"
#include "backend/cuda/kernels/linear/linear.h"

namespace inferno::cuda {

// gemm() straight from MXFP4 tiles, on Hopper: a tile of the sorted choices has coded_rows places at most,
// rows of `in` and of `out` are in order of places. Of each 64 columns of `in` the order is what
// arrange_choices() makes it, and what coded_gated() writes.
constexpr int coded_rows = 256;
struct CodedProduct {
  Matrix out, in;
  const float* bias = nullptr;
  std::int64_t bias_stride = 0;
  const Sorted* sorted = nullptr;
  std::int32_t tiles = 0;
};
bool coded_takes(const Queue& queue, std::span<const WeightView> gate_up, const WeightView& down, int hidden,
                 const ActivationSpec& activation);
// out [choices, cols], bf16: for each choice its token's row of `in`.
void arrange_choices(const Queue& queue, Matrix out, Matrix in, const Sorted& sorted, int active);
void coded_gated(const Queue& queue, std::span<const WeightView> gate_up, const CodedProduct& product,
                 const ActivationSpec& activation);
void coded_plain(const Queue& queue, const WeightView& weight, const CodedProduct& product);  // f32 results

// Products of a few dozen tokens straight from tiles, on Hopper and later; inputs are bf16.
// Of experts: a group is a tile of the sorted choices, `group` places at most; results are in order of
// places. MXFP4 also takes f16 inputs, and gated results may be f16.
struct GroupedProduct {
  Matrix out, in;
  const float* factors = nullptr;  // of the rows of in; null: 1
  const float* bias = nullptr;
  std::int64_t bias_stride = 0;
  const Sorted* sorted = nullptr;
  std::int32_t groups = 0, group = 8;
  bool gathers = false;  // in is read through sorted->tokens
};
// How many tokens of a group both products take, `wanted` or fewer; 0: none.
int grouped_tokens(const Queue& queue, std::span<const WeightView> gate_up, const WeightView& down,
                   int hidden, int wanted);
void grouped_gated(const Queue& queue, std::span<const WeightView> gate_up, const GroupedProduct& product,
                   const ActivationSpec& activation);
// Only directly behind grouped_gated() of the same groups: it reads them before that one has ended.
void grouped_plain(const Queue& queue, const WeightView& weight, const GroupedProduct& product);

// The largest logits of each row of f32 [tokens, experts], the lower expert first where they are equal.
constexpr int max_active_experts = 32;
void route(const Queue& queue, std::int32_t* experts, float* shares, Matrix logits, const MoeMlp& spec);
// The same from the rows that the router reads, which are also rounded to two bytes an element for what comes
// next: to bf16, or to f16 under a factor for each row, a power of two.
struct RoutedRows {
  Matrix in, narrow = {};
  float* factors = nullptr;     // [tokens], where narrow is f16
  const float* bias = nullptr;  // the router's
  std::int32_t* experts = nullptr;
  float* shares = nullptr;
};
bool route_takes_rows(const WeightView& router);
void route_rows(const Queue& queue, const RoutedRows& rows, const WeightView& router, const MoeMlp& spec);
// The same for many tokens, without the rounded rows: narrow and factors are not touched.
bool route_takes_many(const WeightView& router, Matrix in);
void route_many(const Queue& queue, const RoutedRows& rows, const WeightView& router, const MoeMlp& spec);
// The places of one tile, at most; there are max_tiles() of them. In order of experts, or the largest first,
// by quarters: blocks that take one after another then end together.
struct TileOrder {
  int rows = gemm_rows;
  bool by_size = false;
};
void sort_choices(const Queue& queue, const Sorted& sorted, const Chosen& chosen, int experts,
                  const TileOrder& order);
// What experts made of tokens, row by row: choice (t, k) stands in row places[t, k]; null: in order.
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
