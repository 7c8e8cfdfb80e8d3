// mix_experts: the functions to run for each row of dispatch/experts.cpp.
#include <algorithm>
#include <functional>

#include "backend/cuda/kernels/experts/coded_few.h"
#include "backend/cuda/products.h"

namespace inferno::cuda {
namespace {

constexpr int min_group = 8;

GemmCall sorted_call(Matrix out, Matrix in, const Linear& weights, const Sorted& sorted, int tiles) {
  return {.out = out,
          .in = in,
          .bias = bias_of(weights),
          .bias_stride = weights.bias.cols,
          .sorted = &sorted,
          .tiles = tiles};
}

}  // namespace

struct Products::Mixture {
  Matrix logits;          // f32 [tokens, experts]
  std::int32_t* experts;  // [choices]
  float* shares;
  float* factors;              // [choices]: of tokens, or of places
  Matrix input;                // [tokens, width] in the backend's type
  Matrix wide, hidden, mixed;  // [choices, 2 * hidden], [choices, hidden], [choices, width]
  Matrix arranged;             // [choices, width], in the memory of `wide`
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
  out.factors = parts.take<float>(count);
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

std::size_t Products::experts_bytes(const MoeMlp& spec, int width, std::int64_t tokens) const {
  Parts measure(nullptr);
  divide(measure, spec, width, tokens);
  return measure.used();
}

struct Products::MixViews {
  explicit MixViews(const MoeWeights& weights)
      : gate_up(views(weights.gate_up)), down(views(weights.down)), router(views(weights.router)) {}
  std::vector<WeightView> gate_up, down, router;
};

struct Products::MixCall {
  const NormedRows& rows;
  Matrix out;               // the result or, if a norm follows, memory to use
  const AfterBranch* then;  // the norm that follows; may be null
  const MoeMlp& spec;
  const MoeWeights& weights;
  const Mixture& mixture;
  std::span<const WeightView> gate_up, down;
  const ExpertsProblem& problem;
  ExpertsKernel kernel;

  Matrix in() const { return rows.unfinished(); }
  Chosen chosen() const { return mixture.chosen(spec); }
};

ExpertsProblem Products::problem_of(const MixExpertsOperation& operation, const MixViews& views, Matrix in,
                                    bool logits_summed) const {
  return {.device = queue_,
          .spec = operation.spec,
          .gate_up = views.gate_up,
          .down = views.down,
          .router = views.router,
          .tokens = in.rows,
          .activations = activations_,
          .norm = operation.norm,
          .logits_summed = logits_summed};
}

std::string Products::kernels_of(const MixExpertsOperation& operation, int tokens) const {
  const MixViews views(operation.weights);
  const Matrix in = {nullptr, DType::f32, tokens, views.router.front().cols};
  const bool logits_summed = operation.previous != nullptr && sums_logits(*operation.previous, tokens);
  return kernels_of_experts(problem_of(operation, views, in, logits_summed), in);
}

NormedRows Products::run(ExpertsKernel kernel, const MixCall& call) {
  using Run = NormedRows (*)(Products&, const MixCall&);
  static constexpr std::array<RunRow<ExpertsKernel, Run>, experts_kernels> rows = {{
      {ExpertsKernel::stream,
       [](Products& own, const MixCall& c) {
         return own.single_.mix_experts_add_norm(*c.then, c.rows, c.mixture.hidden, c.spec, c.weights);
       }},
      {ExpertsKernel::coded_few, [](Products& own, const MixCall& c) { return own.mix_coded_few(c); }},
      {ExpertsKernel::coded, [](Products& own, const MixCall& c) { return own.mix_coded(c); }},
      {ExpertsKernel::grouped, [](Products& own, const MixCall& c) { return own.mix_grouped(c); }},
      {ExpertsKernel::gemv, [](Products& own, const MixCall& c) { return own.mix_gemv(c); }},
      {ExpertsKernel::gemm_hopper_gated,
       [](Products& own, const MixCall& c) { return own.mix_sorted(c, gemm_hopper, true); }},
      {ExpertsKernel::gemm_hopper,
       [](Products& own, const MixCall& c) { return own.mix_sorted(c, gemm_hopper, false); }},
      {ExpertsKernel::gemm, [](Products& own, const MixCall& c) { return own.mix_sorted(c, gemm, false); }},
      {ExpertsKernel::generic, [](Products& own, const MixCall& c) { return own.mix_generic(c); }},
  }};
  static_assert(is_in_order(rows));
  return rows[static_cast<std::size_t>(kernel)].run(*this, call);
}

NormedRows Products::mix(const NormedRows& in, Matrix out, const AfterBranch* then, const MoeMlp& spec,
                         const MoeWeights& weights) {
  const Matrix rows = in.unfinished();
  reserve_experts(spec, rows.cols, rows.rows);
  Parts parts(between_.at_least(0));
  const Mixture mixture = divide(parts, spec, rows.cols, rows.rows);
  const MixViews views(weights);
  const Norm* norm = then == nullptr ? nullptr : then->norm;
  const bool logits_summed = in.router() == weights.router.parts.front();
  const ExpertsProblem problem =
      problem_of({.spec = spec, .weights = weights, .norm = norm}, views, rows, logits_summed);
  const ExpertsKernel kernel = choose_experts_kernel(problem).kernel;
  const MixCall call = {.rows = in,
                        .out = out,
                        .then = then,
                        .spec = spec,
                        .weights = weights,
                        .mixture = mixture,
                        .gate_up = views.gate_up,
                        .down = views.down,
                        .problem = problem,
                        .kernel = kernel};
  if (kernel != ExpertsKernel::stream) single_.finish(in);
  return run(kernel, call);
}

NormedRows Products::mix_experts_add_norm(const AfterBranch& then, const NormedRows& in, const MoeMlp& spec,
                                          const MoeWeights& weights) {
  if (in.unfinished().rows == 0) return then.out;
  return mix(in, then.branch, &then, spec, weights);
}

void Products::mix_experts(Matrix out, Matrix in, const MoeMlp& spec, const MoeWeights& weights) {
  if (in.rows > 0) mix(in, out, nullptr, spec, weights);
}

// Adds up the rows of each token's choices, which are in the mixture's memory.
NormedRows Products::finish(const MixCall& call, const std::int32_t* places) {
  const MixedRows mixed = {.rows = call.mixture.mixed,
                           .shares = call.mixture.shares,
                           .places = places,
                           .active = call.spec.active};
  if (call.then == nullptr) {
    combine(queue_, call.out, mixed);
    return call.out;
  }
  combine_add_norm(queue_, call.then->out, call.then->residual, mixed, call.then->scale, *call.then->norm);
  return call.then->out;
}

NormedRows Products::mix_gemv(const MixCall& call) {
  route_tokens(call);
  const MoeWeights& weights = call.weights;
  const Product up = {.out = call.mixture.hidden,
                      .in = call.in(),
                      .bias = bias_of(weights.gate_up),
                      .bias_stride = weights.gate_up.bias.cols};
  gemv_gated(queue_, call.gate_up, up, call.chosen(), call.spec.activation);
  const Product down = {.out = call.out,
                        .in = call.mixture.hidden,
                        .bias = bias_of(weights.down),
                        .bias_stride = weights.down.bias.cols};
  gemv_combined(queue_, call.down.front(), down, call.chosen());
  const AfterBranch* then = call.then;
  if (then == nullptr) return call.out;
  add_norm(queue_, then->out, then->residual, call.out, then->scale, *then->norm);
  return then->out;
}

// Chooses experts for every token. Returns the rows, which the route may have rounded. Float activations,
// which are for tests, use the generic kernels.
Matrix Products::route_tokens(const MixCall& call) {
  const Linear& router = call.weights.router;
  const Mixture& mixture = call.mixture;
  const WeightView& weight = call.problem.router.front();
  const RouteKernel kernel = choose_route(route_problem(call.problem, call.kernel, call.in())).kernel;
  RoutedRows rows = {
      .in = call.in(), .bias = bias_of(router), .experts = mixture.experts, .shares = mixture.shares};
  if (kernel == RouteKernel::rows || kernel == RouteKernel::rows_f16) {
    if (call.kernel == ExpertsKernel::grouped) rows.narrow = mixture.input;
    if (kernel == RouteKernel::rows_f16) rows.narrow.dtype = DType::f16;
    rows.factors = mixture.factors;
    route_rows(queue_, rows, weight, call.spec);
    return rows.narrow.data == nullptr ? call.in() : rows.narrow;
  }
  if (kernel == RouteKernel::many) {
    route_many(queue_, rows, weight, call.spec);
  } else {
    linear(mixture.logits, call.in(), router);
    route(queue_, mixture.experts, mixture.shares, mixture.logits, call.spec);
  }
  return call.in();
}

// The rows in two bytes for each element, as grouped and sorted products read them.
Matrix Products::narrowed(const MixCall& call, Matrix rows) {
  if (rows.dtype != DType::f32 || call.mixture.input.dtype == DType::f32) return rows;
  convert(queue_, call.mixture.input, rows);
  return call.mixture.input;
}

NormedRows Products::mix_grouped(const MixCall& call) {
  const Mixture& mixture = call.mixture;
  const Linear &gate_up = call.weights.gate_up, &down = call.weights.down;
  const int group = expert_group(call.problem);
  const Matrix in = narrowed(call, route_tokens(call));
  Matrix hidden = mixture.hidden;
  hidden.dtype = in.dtype;
  sort_choices(queue_, mixture.sorted, call.chosen(), call.spec.experts, {.rows = group});
  GroupedProduct product = {.out = hidden,
                            .in = in,
                            .factors = in.dtype == DType::f16 ? mixture.factors : nullptr,
                            .bias = bias_of(gate_up),
                            .bias_stride = gate_up.bias.cols,
                            .sorted = &mixture.sorted,
                            .groups = max_tiles(mixture.choices, call.spec.experts, group),
                            .group = group,
                            .gathers = true};
  grouped_gated(queue_, call.gate_up, product, call.spec.activation);
  product.out = mixture.mixed;
  product.in = hidden;
  product.factors = nullptr;
  product.bias = bias_of(down);
  product.bias_stride = down.bias.cols;
  product.gathers = false;
  grouped_plain(queue_, call.down.front(), product);
  return finish(call, mixture.sorted.places);
}

NormedRows Products::mix_coded(const MixCall& call) {
  const Mixture& mixture = call.mixture;
  const Linear &gate_up = call.weights.gate_up, &down = call.weights.down;
  route_tokens(call);
  sort_choices(queue_, mixture.sorted, call.chosen(), call.spec.experts,
               {.rows = coded_rows, .by_size = true});
  arrange_choices(queue_, mixture.arranged, call.in(), mixture.sorted, call.spec.active);
  CodedProduct product = {.out = mixture.hidden,
                          .in = mixture.arranged,
                          .bias = bias_of(gate_up),
                          .bias_stride = gate_up.bias.cols,
                          .sorted = &mixture.sorted,
                          .tiles = max_tiles(mixture.choices, call.spec.experts, coded_rows)};
  coded_gated(queue_, call.gate_up, product, call.spec.activation);
  product.out = mixture.mixed;
  product.in = mixture.hidden;
  product.bias = bias_of(down);
  product.bias_stride = down.bias.cols;
  coded_plain(queue_, call.down.front(), product);
  return finish(call, mixture.sorted.places);
}

NormedRows Products::mix_coded_few(const MixCall& call) {
  const Mixture& mixture = call.mixture;
  const Linear &gate_up = call.weights.gate_up, &down = call.weights.down;
  const int tile = coded_few_tile(call.problem);
  route_tokens(call);
  sort_choices(queue_, mixture.sorted, call.chosen(), call.spec.experts, {.rows = tile});
  Matrix arranged = mixture.arranged, hidden = mixture.hidden;
  arranged.dtype = hidden.dtype = DType::f16;
  arrange_choices_f16(queue_, arranged, mixture.factors, call.in(), mixture.sorted, call.spec.active);
  CodedFewProduct product = {.out = hidden,
                             .in = arranged,
                             .rows = tile,
                             .factors = mixture.factors,
                             .bias = bias_of(gate_up),
                             .bias_stride = gate_up.bias.cols,
                             .sorted = &mixture.sorted,
                             .tiles = max_tiles(mixture.choices, call.spec.experts, tile)};
  coded_few_gated(queue_, call.gate_up, product, call.spec.activation);
  product.out = mixture.mixed;
  product.in = hidden;
  product.factors = nullptr;
  product.bias = bias_of(down);
  product.bias_stride = down.bias.cols;
  coded_few_plain(queue_, call.down.front(), product);
  return finish(call, mixture.sorted.places);
}

// Calls use(weight, first expert) with bf16 in tiles. Other formats are decoded in slabs, as many experts at
// once as the workspace holds; experts that no token chose are left out.
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

void Products::multiply_sorted(Gemm* gemm, GemmCall call, std::span<const WeightView> parts,
                               const Mixture& mixture) {
  for (const WeightView& weight : parts) {
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

// hidden = act(gate, up) for every choice, in one product.
void Products::activate_sorted(Matrix in, const MixCall& call) {
  const Mixture& mixture = call.mixture;
  GemmCall what = sorted_call(mixture.hidden, in, call.weights.gate_up, mixture.sorted, mixture.tiles);
  what.gathers = true;
  if (call.gate_up.size() == 2) {  // both are bf16
    what.experts = call.spec.experts;
    return gemm_hopper_gated(queue_, call.gate_up, what, call.spec.activation);
  }
  with_decoded(call.gate_up.front(), mixture, [&](const WeightView& slab, std::int32_t first) {
    what.first_expert = first;
    what.experts = slab.count;
    gemm_hopper_gated(queue_, {&slab, 1}, what, call.spec.activation);
  });
}

NormedRows Products::mix_sorted(const MixCall& call, Gemm* gemm, bool gated) {
  const Mixture& mixture = call.mixture;
  const Matrix in = narrowed(call, route_tokens(call));
  sort_choices(queue_, mixture.sorted, call.chosen(), call.spec.experts, {.rows = gemm_rows});
  if (gated) {
    activate_sorted(in, call);
  } else {
    GemmCall up = sorted_call(mixture.wide, in, call.weights.gate_up, mixture.sorted, mixture.tiles);
    up.gathers = true;
    multiply_sorted(gemm, up, call.gate_up, mixture);
    activate(queue_, mixture.hidden, mixture.wide, call.spec.activation);
  }
  const GemmCall down =
      sorted_call(mixture.mixed, mixture.hidden, call.weights.down, mixture.sorted, mixture.tiles);
  multiply_sorted(gemm, down, call.down, mixture);
  return finish(call, mixture.sorted.places);
}

NormedRows Products::mix_generic(const MixCall& call) {
  const Mixture& mixture = call.mixture;
  route_tokens(call);
  const auto multiply = [&](Matrix out, Matrix from, const Linear& weights, int in_divisor) {
    Product product = {.out = out,
                       .in = from,
                       .bias = bias_of(weights),
                       .bias_stride = weights.bias.cols,
                       .experts = mixture.experts,
                       .in_divisor = in_divisor};
    for (const WeightView& weight : views(weights)) {
      linear_generic(queue_, weight, product);
      product.column += weight.rows;
    }
  };
  multiply(mixture.wide, call.in(), call.weights.gate_up, call.spec.active);
  activate(queue_, mixture.hidden, mixture.wide, call.spec.activation);
  multiply(mixture.mixed, mixture.hidden, call.weights.down, 1);
  return finish(call, nullptr);
}

}  // namespace inferno::cuda
