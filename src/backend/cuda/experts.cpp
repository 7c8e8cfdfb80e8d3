// mix_experts: for one token each choice reads its own expert's weights; more are sorted by expert, so that
// an expert's weights are read once for all of its tokens, or for a group of them.
#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include "backend/cuda/device/tiles.cuh"
#include "backend/cuda/products.h"
#include "base/error.h"

namespace inferno::cuda {
namespace {

constexpr std::int64_t few_choices = 64;
constexpr int plain_tokens = 8;
constexpr int min_group = 8;
// Choices for each expert: with more, gemm is faster, even where all weights must be decoded for it.
constexpr int grouped_choices = 32, grouped_choices_decoded = 128;
// ... and from here on decoding in registers, for which tokens are arranged first, is.
constexpr int coded_choices = 16;

std::vector<WeightView> views(const Linear& weights) {
  std::vector<WeightView> out;
  for (const Weight* weight : weights.parts) out.push_back(view(*weight));
  return out;
}

bool all_whole_runs(const std::vector<WeightView>& parts) {
  return std::ranges::all_of(parts, [](const WeightView& part) { return part.cols % 8 == 0; });
}

// What expand() makes of a weight, but for its data.
WeightView decoded_view(const WeightView& weight) {
  WeightView out = {.data = weight.data,
                    .format = WeightFormat::bf16,
                    .layout = Layout::tiled,
                    .count = weight.count,
                    .rows = weight.rows,
                    .cols = weight.cols,
                    .tile_bytes = tiles::tile_bytes(WeightFormat::bf16, weight.cols),
                    .rows_between = static_cast<std::int32_t>(tiles::padded_rows(weight.rows))};
  out.bytes_between = out.rows_between / tiles::tile_rows * out.tile_bytes;
  return out;
}

// A gated result that cannot leave f16's range.
bool takes_f16(const MoeMlp& spec, const MoeWeights& weights) {
  constexpr float most = 3e4f;
  const auto is_mxfp4 = [](const Weight* weight) { return view(*weight).format == WeightFormat::mxfp4; };
  return largest_activated(spec.activation) < most && std::ranges::all_of(weights.gate_up.parts, is_mxfp4) &&
         std::ranges::all_of(weights.down.parts, is_mxfp4);
}

}  // namespace

struct Products::Mixture {
  Matrix logits;          // f32 [tokens, experts]
  std::int32_t* experts;  // [choices]
  float* shares;
  float* factors;              // [tokens]
  Matrix input;                // [tokens, width] in the backend's type
  Matrix wide, hidden, mixed;  // [choices, 2 * hidden], [choices, hidden], [choices, width]
  Matrix arranged;             // [choices, width], in the place of `wide`
  Sorted sorted;
  std::int32_t choices, tiles;

  Chosen chosen(const MoeMlp& spec) const {
    return {.experts = experts, .shares = shares, .active = spec.active, .choices = choices};
  }
};

Products::Mixture Products::divide(Parts& parts, const MoeMlp& spec, int width, std::int64_t tokens) const {
  const DType type = activations_;
  const std::int64_t choices = tokens * spec.active;
  const auto count = static_cast<std::size_t>(choices);
  const int tiles = max_tiles(choices, spec.experts, min_group);
  const auto experts = static_cast<std::size_t>(spec.experts);
  Mixture out = {};
  out.choices = static_cast<std::int32_t>(choices);
  out.tiles = max_tiles(choices, spec.experts, gemm_rows);
  out.logits = parts.matrix(DType::f32, tokens, spec.experts);
  out.experts = parts.take<std::int32_t>(count);
  out.shares = parts.take<float>(count);
  out.factors = parts.take<float>(static_cast<std::size_t>(tokens));
  out.input = parts.matrix(type, tokens, width);
  const int wide = spec.activation.gated ? 2 * spec.hidden : spec.hidden;
  out.wide = parts.matrix(DType::f32, choices, std::max(wide, (width + 1) / 2));
  out.arranged = out.wide;
  out.arranged.dtype = type;
  out.arranged.cols = width;
  out.wide.cols = wide;
  out.hidden = parts.matrix(type, choices, spec.hidden);
  out.mixed = parts.matrix(DType::f32, choices, width);
  out.sorted.counts = parts.take<std::int32_t>(experts);
  out.sorted.starts = parts.take<std::int32_t>(experts);
  out.sorted.places = parts.take<std::int32_t>(count);
  out.sorted.tokens = parts.take<std::int32_t>(count);
  out.sorted.tile_expert = parts.take<std::int32_t>(static_cast<std::size_t>(tiles));
  out.sorted.tile_first = parts.take<std::int32_t>(static_cast<std::size_t>(tiles));
  out.sorted.tile_rows = parts.take<std::int32_t>(static_cast<std::size_t>(tiles));
  return out;
}

void Products::reserve_experts(const MoeMlp& spec, int width, std::int64_t tokens) {
  Parts measure(nullptr);
  divide(measure, spec, width, tokens);
  between_.at_least(measure.used());
}

NormedRows Products::mix_experts_add_norm(const AfterBranch& then, const NormedRows& rows, const MoeMlp& spec,
                                          const MoeWeights& weights) {
  const Matrix in = rows.unfinished();
  if (in.rows == 0) return then.out;
  reserve_experts(spec, in.cols, in.rows);
  Parts parts(between_.at_least(0));
  const Mixture mixture = divide(parts, spec, in.cols, in.rows);
  if (in.rows == 1) {
    auto delayed = single_.mix_experts_add_norm(then, rows, mixture.hidden, spec, weights);
    if (delayed) return std::move(*delayed);
  }
  single_.finish(rows);
  mix(in, spec, weights, mixture, {.out = then.branch, .then = &then});
  return then.out;
}

void Products::mix_experts(Matrix out, Matrix in, const MoeMlp& spec, const MoeWeights& weights) {
  if (in.rows == 0) return;
  reserve_experts(spec, in.cols, in.rows);
  Parts parts(between_.at_least(0));
  mix(in, spec, weights, divide(parts, spec, in.cols, in.rows), {.out = out});
}

// The choices' rows are where the mixture has them.
void Products::finish(const Target& to, const MoeMlp& spec, const Mixture& mixture,
                      const std::int32_t* places) {
  const MixedRows mixed = {
      .rows = mixture.mixed, .shares = mixture.shares, .places = places, .active = spec.active};
  if (to.then == nullptr) return combine(queue_, to.out, mixed);
  combine_add_norm(queue_, to.then->out, to.then->residual, mixed, to.then->scale, *to.then->norm);
}

void Products::mix(Matrix in, const MoeMlp& spec, const MoeWeights& weights, const Mixture& mixture,
                   const Target& to) {
  const bool narrow = activations_ == DType::bf16;
  const std::vector<WeightView> up = views(weights.gate_up), down = views(weights.down);
  const bool fast = narrow && spec.activation.gated && gemv_takes_gated(up, spec.hidden) &&
                    gemv_takes(down.front(), spec.active);
  const std::int64_t enough = std::int64_t{coded_choices} * spec.experts;
  if (narrow && mixture.choices >= enough && down.size() == 1 &&
      coded_takes(queue_, up, down.front(), spec.hidden, spec.activation)) {
    return mix_coded(to, in, spec, weights, mixture);
  }
  const bool groups = narrow && !(fast && in.rows == 1);  // one token has nothing to share
  if (const int group = groups ? group_for(spec, weights, mixture) : 0; group > 0) {
    return mix_grouped(to, in, spec, weights, mixture, group);
  }
  route_tokens(in, spec, weights.router, mixture);
  if (fast && mixture.choices <= few_choices) {
    mix_few(to, in, spec, weights, mixture);
  } else if (narrow && in.rows > plain_tokens && all_whole_runs(up) && all_whole_runs(down)) {
    mix_sorted(to, in, spec, weights, mixture);
  } else {
    mix_plainly(to, in, spec, weights, mixture);
  }
}

void Products::mix_few(const Target& to, Matrix in, const MoeMlp& spec, const MoeWeights& weights,
                       const Mixture& mixture) {
  const Chosen chosen = mixture.chosen(spec);
  const Product up = {.out = mixture.hidden,
                      .in = in,
                      .bias = bias_of(weights.gate_up),
                      .bias_stride = weights.gate_up.bias.cols};
  gemv_gated(queue_, views(weights.gate_up), up, chosen, spec.activation);
  const Product down = {.out = to.out,
                        .in = mixture.hidden,
                        .bias = bias_of(weights.down),
                        .bias_stride = weights.down.bias.cols};
  gemv_combined(queue_, views(weights.down).front(), down, chosen);
  if (to.then != nullptr) {
    add_norm(queue_, to.then->out, to.then->residual, to.out, to.then->scale, *to.then->norm);
  }
}

// Groups that hold nearly every expert's tokens when choices fall by chance: further ones read its weights
// again.
int Products::group_for(const MoeMlp& spec, const MoeWeights& weights, const Mixture& mixture) const {
  const std::vector<WeightView> up = views(weights.gate_up), down = views(weights.down);
  const bool decodes = up.front().format != WeightFormat::bf16;
  const std::int64_t most = (decodes ? grouped_choices_decoded : grouped_choices) * spec.experts;
  if (!spec.activation.gated || down.size() != 1 || mixture.choices > most) return 0;
  const double mean = static_cast<double>(mixture.choices) / spec.experts;
  const auto usual = static_cast<int>(std::ceil(mean + 2.5 * std::sqrt(mean)));
  return grouped_tokens(queue_, up, down.front(), spec.hidden, std::min(usual, mixture.logits.rows));
}

// Many tokens in one kernel; float activations, which are for tests, stay with the generic ones.
void Products::route_tokens(Matrix in, const MoeMlp& spec, const Linear& router, const Mixture& mixture) {
  const bool many = activations_ == DType::bf16 && in.rows > plain_tokens && router.parts.size() == 1;
  if (many && route_takes_many(view(*router.parts.front()), in)) {
    const RoutedRows rows = {
        .in = in, .bias = bias_of(router), .experts = mixture.experts, .shares = mixture.shares};
    return route_many(queue_, rows, view(*router.parts.front()), spec);
  }
  linear(mixture.logits, in, router);
  route(queue_, mixture.experts, mixture.shares, mixture.logits, spec);
}

// Routes, and brings the rows into the type that the products read: f16 where weights are MXFP4 and what
// stands between the products stays within f16's range, otherwise bf16.
Matrix Products::route_grouped(Matrix in, const MoeMlp& spec, const MoeWeights& weights,
                               const Mixture& mixture) {
  const Linear& router = weights.router;
  if (router.parts.size() != 1 || !route_takes_rows(view(*router.parts.front()))) {
    route_tokens(in, spec, router, mixture);
    if (in.dtype == mixture.input.dtype) return in;
    convert(queue_, mixture.input, in);
    return mixture.input;
  }
  Matrix narrow = mixture.input;
  if (takes_f16(spec, weights)) narrow.dtype = DType::f16;
  route_rows(queue_,
             {.in = in,
              .narrow = narrow,
              .factors = mixture.factors,
              .bias = bias_of(router),
              .experts = mixture.experts,
              .shares = mixture.shares},
             view(*router.parts.front()), spec);
  return narrow;
}

void Products::mix_grouped(const Target& to, Matrix in, const MoeMlp& spec, const MoeWeights& weights,
                           const Mixture& mixture, int group) {
  in = route_grouped(in, spec, weights, mixture);
  Matrix hidden = mixture.hidden;
  hidden.dtype = in.dtype;
  sort_choices(queue_, mixture.sorted, mixture.chosen(spec), spec.experts, {.rows = group});
  GroupedProduct product = {.out = hidden,
                            .in = in,
                            .factors = in.dtype == DType::f16 ? mixture.factors : nullptr,
                            .bias = bias_of(weights.gate_up),
                            .bias_stride = weights.gate_up.bias.cols,
                            .sorted = &mixture.sorted,
                            .groups = max_tiles(mixture.choices, spec.experts, group),
                            .group = group,
                            .gathers = true};
  grouped_gated(queue_, views(weights.gate_up), product, spec.activation);
  product.out = mixture.mixed;
  product.in = hidden;
  product.factors = nullptr;
  product.bias = bias_of(weights.down);
  product.bias_stride = weights.down.bias.cols;
  product.gathers = false;
  grouped_plain(queue_, views(weights.down).front(), product);
  finish(to, spec, mixture, mixture.sorted.places);
}

void Products::mix_coded(const Target& to, Matrix in, const MoeMlp& spec, const MoeWeights& weights,
                         const Mixture& mixture) {
  route_tokens(in, spec, weights.router, mixture);
  sort_choices(queue_, mixture.sorted, mixture.chosen(spec), spec.experts,
               {.rows = coded_rows, .by_size = true});
  arrange_choices(queue_, mixture.arranged, in, mixture.sorted, spec.active);
  CodedProduct product = {.out = mixture.hidden,
                          .in = mixture.arranged,
                          .bias = bias_of(weights.gate_up),
                          .bias_stride = weights.gate_up.bias.cols,
                          .sorted = &mixture.sorted,
                          .tiles = max_tiles(mixture.choices, spec.experts, coded_rows)};
  coded_gated(queue_, views(weights.gate_up), product, spec.activation);
  product.out = mixture.mixed;
  product.in = mixture.hidden;
  product.bias = bias_of(weights.down);
  product.bias_stride = weights.down.bias.cols;
  coded_plain(queue_, views(weights.down).front(), product);
  finish(to, spec, mixture, mixture.sorted.places);
}

// Calls use(weight, first expert) with bf16 in tiles. Other formats are decoded in slabs, as many experts at
// once as the workspace holds; those that nobody chose are left out.
void Products::with_decoded(const WeightView& weight, const Mixture& mixture,
                            const std::function<void(const WeightView&, std::int32_t)>& use) {
  if (is_decoded(weight)) return use(weight, 0);
  WeightView decoded = decoded_view(weight);
  const std::int64_t tiles_each = decoded.rows_between / tiles::tile_rows;
  decoded.data = expanded_.at_least(static_cast<std::size_t>(decoded.bytes_between));
  const auto at_once = static_cast<std::int32_t>(std::min<std::int64_t>(
      weight.count, static_cast<std::int64_t>(expanded_.size()) / decoded.bytes_between));
  for (std::int32_t first = 0; first < weight.count; first += at_once) {
    decoded.count = std::min(at_once, weight.count - first);
    expand(queue_, expanded_.at_least(0), weight, {first * tiles_each, decoded.count * tiles_each},
           mixture.sorted.counts + first);
    use(decoded, first);
  }
}

GemmCall Products::sorted_call(Matrix out, Matrix in, const Linear& weights, const Mixture& mixture) {
  return {.out = out,
          .in = in,
          .bias = bias_of(weights),
          .bias_stride = weights.bias.cols,
          .sorted = &mixture.sorted,
          .tiles = mixture.tiles};
}

void Products::multiply_sorted(GemmCall call, const Linear& weights, const Mixture& mixture) {
  for (const WeightView& weight : views(weights)) {
    call.rows = weight.rows;
    call.cols = weight.cols;
    with_decoded(weight, mixture, [&](const WeightView& slab, std::int32_t first) {
      call.weight = slab.data;
      call.first_expert = first;
      call.experts = slab.count;
      gemm(queue_, call);
    });
    call.column += weight.rows;
  }
}

// hidden = act(gate, up) for every choice: in one product where there is such a kernel.
void Products::activate_sorted(Matrix in, const MoeMlp& spec, const Linear& gate_up, const Mixture& mixture) {
  const std::vector<WeightView> parts = views(gate_up);
  std::vector<WeightView> decoded;
  std::ranges::transform(parts, std::back_inserter(decoded), decoded_view);
  const bool at_once = parts.size() == 1 || std::ranges::all_of(parts, is_decoded);
  GemmCall call = sorted_call(mixture.hidden, in, gate_up, mixture);
  call.gathers = true;
  if (!at_once || !gemm_takes_gated(queue_, decoded, spec.hidden, spec.activation)) {
    call.out = mixture.wide;
    multiply_sorted(call, gate_up, mixture);
    activate(queue_, mixture.hidden, mixture.wide, spec.activation);
  } else if (parts.size() == 2) {
    call.experts = spec.experts;
    gemm_gated(queue_, parts, call, spec.activation);
  } else {
    with_decoded(parts.front(), mixture, [&](const WeightView& slab, std::int32_t first) {
      call.first_expert = first;
      call.experts = slab.count;
      gemm_gated(queue_, std::span(&slab, 1), call, spec.activation);
    });
  }
}

void Products::mix_sorted(const Target& to, Matrix in, const MoeMlp& spec, const MoeWeights& weights,
                          const Mixture& mixture) {
  if (in.dtype != mixture.input.dtype) {
    convert(queue_, mixture.input, in);
    in = mixture.input;
  }
  sort_choices(queue_, mixture.sorted, mixture.chosen(spec), spec.experts, {.rows = gemm_rows});
  activate_sorted(in, spec, weights.gate_up, mixture);
  multiply_sorted(sorted_call(mixture.mixed, mixture.hidden, weights.down, mixture), weights.down, mixture);
  finish(to, spec, mixture, mixture.sorted.places);
}

void Products::mix_plainly(const Target& to, Matrix in, const MoeMlp& spec, const MoeWeights& weights,
                           const Mixture& mixture) {
  const auto multiply = [&](Matrix out, Matrix from, const Linear& linear_weights, int in_divisor) {
    Product product = {.out = out,
                       .in = from,
                       .bias = bias_of(linear_weights),
                       .bias_stride = linear_weights.bias.cols,
                       .experts = mixture.experts,
                       .in_divisor = in_divisor};
    for (const WeightView& weight : views(linear_weights)) {
      linear_generic(queue_, weight, product);
      product.column += weight.rows;
    }
  };
  multiply(mixture.wide, in, weights.gate_up, spec.active);
  activate(queue_, mixture.hidden, mixture.wide, spec.activation);
  multiply(mixture.mixed, mixture.hidden, weights.down, 1);
  finish(to, spec, mixture, nullptr);
}

}  // namespace inferno::cuda
