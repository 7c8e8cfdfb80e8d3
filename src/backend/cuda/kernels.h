// The CUDA kernels' launchers. Each queues work and returns; none allocates or waits. Shapes as in backend.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "backend/backend.h"
#include "backend/cuda/queue.h"

namespace inferno::cuda {

// How a weight's rows lie in device memory: Weight::layout.
enum class Layout : std::uint8_t {
  stored,  // the file's blocks, one after another
  split,   // codes, then scales of each row: Q6_K
  tiled,   // eight rows together, see device/tiles.cuh
};
Layout fast_layout(WeightFormat format);  // what the kernels for bf16 activations read

struct WeightView {
  const std::byte* data = nullptr;
  WeightFormat format = WeightFormat::f32;
  Layout layout = Layout::stored;
  std::int32_t count = 1, rows = 0, cols = 0;
  std::int64_t row_bytes = 0;      // 0 in tiles
  std::int64_t tile_bytes = 0;     // of eight rows; 0 unless in tiles
  std::int32_t rows_between = 0;   // from one of `count` matrices to the next: in tiles, rows rounded up
  std::int64_t bytes_between = 0;  // the same in bytes

  // Where row `first` of the first matrix begins; in tiles only of multiples of eight.
  const std::byte* from_row(std::int64_t first) const {
    return data + (layout == Layout::tiled ? first / 8 * tile_bytes : first * row_bytes);
  }
  bool can_begin_at(std::int32_t row) const { return layout != Layout::tiled || row % 8 == 0; }
};
WeightView view(const Weight& weight);
// Whether one product may take both as its parts.
inline bool same_kind(const WeightView& a, const WeightView& b) {
  return a.format == b.format && a.layout == b.layout && a.cols == b.cols;
}
inline const float* bias_of(const Linear& weights) {
  return reinterpret_cast<const float*>(weights.bias.data);
}
// What no result of a gated activation exceeds; infinity where there is no limit.
inline float largest_activated(const ActivationSpec& activation) {
  const bool limited = activation.kind == Activation::swiglu_clamped;
  return limited ? activation.limit * (activation.limit + 1.0f) : std::numeric_limits<float>::infinity();
}

// Rows as a file has them; decoder_row() says where each goes.
struct RowRange {
  std::int64_t first = 0, count = 0;
  std::int32_t alternating = 0;
};
// From the file's blocks to Layout::split or tiled, where only what is missing in a tile is not written. `to`
// is where the weight begins, `from` the first row of the range. `*too_large` becomes 1 where an MXFP4 scale
// does not fit.
void pack_rows(const Queue& queue, std::byte* to, const std::byte* from, const WeightView& shape,
               const RowRange& rows, std::int32_t* too_large);
// The same for rows that stay as they are.
void place_rows(const Queue& queue, std::byte* to, const std::byte* from, std::int64_t row_bytes,
                const RowRange& rows);

// out[r] = scale * table[rows[r]], or out[r] += table[rows[r]].
void embed(const Queue& queue, Matrix out, const WeightView& table, Matrix rows, float scale);
void add_rows(const Queue& queue, Matrix out, const WeightView& table, Matrix rows);
void take_rows(const Queue& queue, Matrix out, Matrix in, Matrix rows);
void add_norm(const Queue& queue, Matrix out, Matrix residual, Matrix delta, float scale, const Norm& norm);
void convert(const Queue& queue, Matrix out, Matrix in);  // to another type
void activate(const Queue& queue, Matrix out, Matrix in, const ActivationSpec& activation);
void rotate_and_store(const Queue& queue, Matrix qkv, Matrix rope_table, const AttentionCall& call);

// A block for each row, group of heads and stretch of positions. The stretches' results meet in `partial`.
struct AttendScratch {
  float* partial = nullptr;          // attend_partial_floats() of them
  std::uint32_t* tickets = nullptr;  // one for each row and group, all zero before and after
  std::int64_t partial_floats = 0, ticket_count = 0;
};
constexpr int attend_most_splits = 32;
void attend_rows(const Queue& queue, Matrix out, Matrix qkv, const AttentionCall& call,
                 const AttendScratch& scratch);
// One new token for each sequence, its rotation included: only what takes_decode() accepts. Where
// Queue::max_cluster is 1 the stretches' results meet in `scratch`.
// Blocks, on the current device, which must know clusters.
int max_decode_cluster(int multiprocessors, int shared_limit);
bool takes_decode(const AttentionSpec& spec, Matrix rope_table, const StepInputs& step, DType cache);
void attend_decode(const Queue& queue, Matrix out, Matrix qkv, Matrix rope_table, const AttentionCall& call,
                   const AttendScratch& scratch);
// Tiles of 64 queries with tensor cores; bf16 only, and only what takes_tiles() accepts.
bool takes_tiles(const AttentionSpec& spec);
void attend_tiles(const Queue& queue, Matrix out, Matrix qkv, const AttentionCall& call);

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
constexpr int gemv_most_tokens = 8;
constexpr int gemv_most_parts = 4;
bool has_gemv(const WeightView& weight);
void gemv(const Queue& queue, std::span<const WeightView> parts, const Product& product);
// out[r] = act(gate, up): without experts for each token, otherwise for each choice. `in` may be f32 with
// experts. Combined: out[token] = sum over its choices of share * (down + bias).
struct Chosen {
  const std::int32_t* experts = nullptr;  // [choices]
  const float* shares = nullptr;
  std::int32_t active = 1, choices = 0;
};
void gemv_gated(const Queue& queue, std::span<const WeightView> gate_up, const Product& product,
                const Chosen& chosen, const ActivationSpec& activation);
bool gemv_takes_gated(std::span<const WeightView> gate_up, int hidden);  // whether gemv_gated() does
bool gemv_takes(const WeightView& down, int active);                     // whether gemv_combined() does
void gemv_combined(const Queue& queue, const WeightView& down, const Product& product, const Chosen& chosen);

// Decoded to bf16 in tiles: `tiles` of them from number `first` on, those of one matrix behind those of
// another. With `counts`, matrices (experts) of which nobody asked are left out; the first tile is then the
// first of a matrix, counts[0] its own.
struct TileRange {
  std::int64_t first = 0, count = 0;
};
void expand(const Queue& queue, std::byte* out, const WeightView& weight, const TileRange& tiles,
            const std::int32_t* counts);

// Choices sorted by expert, for matrix products of many tokens.
struct Sorted {
  std::int32_t* counts = nullptr;       // [experts]
  std::int32_t* starts = nullptr;       // [experts]
  std::int32_t* places = nullptr;       // [choices]: where each choice stands
  std::int32_t* tokens = nullptr;       // [choices]: by place
  std::int32_t* tile_expert = nullptr;  // [tiles]; -1 behind the last
  std::int32_t* tile_first = nullptr;   // [tiles]: the place it begins at
  std::int32_t* tile_rows = nullptr;    // [tiles]: how many places it has; 0 behind the last
};
constexpr int gemm_rows = 128;
// How many tiles of `rows` there can be, however choices fall.
constexpr int max_tiles(std::int64_t choices, int experts, int rows) {
  return static_cast<int>(std::min<std::int64_t>(choices, choices / rows + experts));
}
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
  // gemv_most_parts at most.
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

// The same straight from MXFP4 tiles, on Hopper: a tile of the sorted choices has coded_rows places at most,
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
// What gemv() does, for more tokens: one matrix of several parts, no experts.
bool grouped_takes(const Queue& queue, const WeightView& weight, Matrix out);
void grouped_linear(const Queue& queue, std::span<const WeightView> parts, const Product& product);

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

// A small upload.
bool can_put(const std::byte* to, std::size_t bytes);
void put(const Queue& queue, std::byte* to, std::span<const std::byte> from);

// Room for one row being sampled, `sample_rows_at_once` times over.
constexpr int sample_rows_at_once = 16;
constexpr std::size_t sample_floats(std::int64_t vocab) {
  return static_cast<std::size_t>(vocab) * 5;
}
void sample(const Queue& queue, Matrix out, Matrix logits, const SamplingInputs& inputs, float* scratch);

}  // namespace inferno::cuda
