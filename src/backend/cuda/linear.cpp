// linear, linear_activated and linear_add_norm: the functions to run for each row of dispatch/linear.cpp.
#include <algorithm>

#include "backend/cuda/products.h"

namespace inferno::cuda {

struct Products::LinearCall {
  std::span<const WeightView> parts;  // alike, if the kernel joins parts; otherwise one
  Product product;
  StreamInput in;
};

struct Products::LinearViews {
  explicit LinearViews(const LinearAddNormOperation& operation) : parts(views(operation.weights)) {
    if (operation.router != nullptr) router = views(*operation.router);
  }
  std::vector<WeightView> parts, router;
};

LinearProblem Products::problem_of(const LinearActivatedOperation& operation,
                                   std::span<const WeightView> parts, Matrix in, DType out) const {
  LinearProblem problem = problem_of(parts, in, out);
  problem.activation = &operation.activation;
  return problem;
}

LinearProblem Products::problem_of(const LinearAddNormOperation& operation, const LinearViews& views,
                                   Matrix in) const {
  LinearProblem problem = problem_of(views.parts, in, DType::f32);
  problem.norm = &operation.norm;
  problem.router = views.router;
  return problem;
}

struct Products::ActivatedCall {
  Matrix out, wide;
  const NormedRows& in;
  const Linear& weights;
  std::span<const WeightView> parts;
  const ActivationSpec& activation;
};

void Products::multiply(Gemm* gemm, const LinearCall& call) {
  const WeightView& weight = call.parts.front();
  GemmCall what = {.out = call.product.out,
                   .in = call.product.in,
                   .column = call.product.column,
                   .bias = call.product.bias,
                   .bias_stride = call.product.bias_stride,
                   .weight = weight.data,
                   .rows = weight.rows,
                   .cols = weight.cols};
  if (call.parts.size() > 1) what.parts = call.parts;
  gemm(queue_, what);
}

// Decodes slabs of tiles, as many at once as the workspace holds.
void Products::multiply_expanded(Gemm* gemm, const LinearCall& call) {
  const WeightView& weight = call.parts.front();
  WeightView slab = decoded_view(weight);
  const std::int64_t tile = slab.tile_bytes;
  const std::int64_t all = slab.rows_between / tiles::tile_rows;
  // prepare() made room for the largest weight, whatever its size; without it, single tiles would be slow.
  const bool has_room = static_cast<std::int64_t>(expanded_.size()) >= tile;
  slab.data =
      expanded_.at_least(static_cast<std::size_t>(has_room ? tile : std::max<std::int64_t>(tile, 1 << 20)));
  const std::int64_t at_once = static_cast<std::int64_t>(expanded_.size()) / tile;
  for (std::int64_t first = 0; first < all; first += at_once) {
    const std::int64_t count = std::min(at_once, all - first);
    const auto row = static_cast<std::int32_t>(first * tiles::tile_rows);
    slab.rows = std::min(static_cast<std::int32_t>(count * tiles::tile_rows), weight.rows - row);
    expand(queue_, expanded_.at_least(0), weight, {first, count}, nullptr);
    LinearCall part = {.parts = {&slab, 1}, .product = call.product, .in = {}};
    part.product.column += row;
    multiply(gemm, part);
  }
}

void Products::run(LinearKernel kernel, const LinearCall& call) {
  using Run = void (*)(Products&, const LinearCall&);
  static constexpr std::array<RunRow<LinearKernel, Run>, linear_kernels> rows = {{
      {LinearKernel::stream,
       [](Products& own, const LinearCall& c) {
         stream_linear(own.queue_, c.parts, c.product.out, c.product.column, c.in, c.product.bias);
       }},
      {LinearKernel::grouped,
       [](Products& own, const LinearCall& c) { grouped_linear(own.queue_, c.parts, c.product); }},
      {LinearKernel::gemv, [](Products& own, const LinearCall& c) { gemv(own.queue_, c.parts, c.product); }},
      {LinearKernel::gemm_hopper, [](Products& own, const LinearCall& c) { own.multiply(gemm_hopper, c); }},
      {LinearKernel::gemm, [](Products& own, const LinearCall& c) { own.multiply(gemm, c); }},
      {LinearKernel::expand_gemm_hopper,
       [](Products& own, const LinearCall& c) { own.multiply_expanded(gemm_hopper, c); }},
      {LinearKernel::expand_gemm, [](Products& own, const LinearCall& c) { own.multiply_expanded(gemm, c); }},
      {LinearKernel::generic,
       [](Products& own, const LinearCall& c) { linear_generic(own.queue_, c.parts.front(), c.product); }},
  }};
  static_assert(is_in_order(rows));
  rows[static_cast<std::size_t>(kernel)].run(*this, call);
}

void Products::linear(Matrix out, const NormedRows& in, const Linear& weights) {
  if (out.rows == 0) return;
  const std::vector<WeightView> parts = views(weights);
  const LinearProblem problem = problem_of(parts, in.unfinished(), out.dtype);
  LinearCall call = {.parts = {},
                     .product = {.out = out,
                                 .in = in.unfinished(),
                                 .bias = bias_of(weights),
                                 .bias_stride = weights.bias.cols},
                     .in = stream_input(in)};
  const auto streams = [&](const WeightView& part) {
    return choose_linear(problem_of({&part, 1}, in.unfinished(), out.dtype)).kernel == LinearKernel::stream;
  };
  if (in.delayed() && !std::ranges::all_of(parts, streams)) call.in = {single_.finish(in), {}};
  for (std::size_t first = 0; first < parts.size(); first += call.parts.size()) {
    const LinearLaunch launch = linear_launch(problem, first);
    call.parts = launch.parts;
    run(launch.row.kernel, call);
    for (const WeightView& part : call.parts) call.product.column += part.rows;
  }
}

void Products::run(ActivatedKernel kernel, const ActivatedCall& call) {
  using Run = void (*)(Products&, const ActivatedCall&);
  static constexpr std::array<RunRow<ActivatedKernel, Run>, activated_kernels> rows = {{
      {ActivatedKernel::stream,
       [](Products& own, const ActivatedCall& c) {
         stream_gated(own.queue_, c.parts, c.out, stream_input(c.in), bias_of(c.weights), c.activation);
       }},
      {ActivatedKernel::gemv,
       [](Products& own, const ActivatedCall& c) {
         const Product product = {.out = c.out,
                                  .in = own.single_.finish(c.in),
                                  .bias = bias_of(c.weights),
                                  .bias_stride = c.weights.bias.cols};
         gemv_gated(own.queue_, c.parts, product, {}, c.activation);
       }},
      {ActivatedKernel::gemm_hopper,
       [](Products& own, const ActivatedCall& c) {
         const GemmCall what = {.out = c.out,
                                .in = own.single_.finish(c.in),
                                .bias = bias_of(c.weights),
                                .bias_stride = c.weights.bias.cols};
         gemm_hopper_gated(own.queue_, c.parts, what, c.activation);
       }},
      {ActivatedKernel::linear_then_activate,
       [](Products& own, const ActivatedCall& c) {
         own.linear(c.wide, own.single_.finish(c.in), c.weights);
         if (c.out.rows > 0) activate(own.queue_, c.out, c.wide, c.activation);
       }},
  }};
  static_assert(is_in_order(rows));
  rows[static_cast<std::size_t>(kernel)].run(*this, call);
}

void Products::linear_activated(Matrix out, Matrix wide, const NormedRows& in, const Linear& weights,
                                const ActivationSpec& activation) {
  const std::vector<WeightView> parts = views(weights);
  const ActivatedRow& row =
      choose_linear_activated(problem_of({weights, activation}, parts, in.unfinished(), wide.dtype));
  run(row.kernel, {out, wide, in, weights, parts, activation});
}

NormedRows Products::linear_add_norm(const AfterBranch& then, Matrix in, const Linear& weights) {
  const LinearAddNormOperation operation = {weights, *then.norm, then.router};
  const AddNormKernel kernel =
      choose_linear_add_norm(problem_of(operation, LinearViews(operation), in)).kernel;
  if (kernel != AddNormKernel::linear_then_norm) {
    return single_.linear_add_norm(then, in, weights, kernel == AddNormKernel::stream_logits);
  }
  linear(then.branch, in, weights);
  if (then.residual.rows > 0) add_norm(queue_, then.out, then.residual, then.branch, then.scale, *then.norm);
  return then.out;
}

std::string Products::kernels_of(const LinearOperation& operation, int tokens) const {
  const std::vector<WeightView> parts = views(operation.weights);
  return kernels_of_linear(
      problem_of(parts, {nullptr, activations_, tokens, parts.front().cols}, DType::f32));
}

std::string Products::kernels_of(const LinearActivatedOperation& operation, int tokens) const {
  const std::vector<WeightView> parts = views(operation.weights);
  const Matrix in = {nullptr, activations_, tokens, parts.front().cols};
  return kernels_of_linear_activated(problem_of(operation, parts, in, DType::f32));
}

bool Products::sums_logits(const LinearAddNormOperation& operation, int tokens) const {
  const LinearViews views(operation);
  const Matrix in = {nullptr, activations_, tokens, views.parts.front().cols};
  return choose_linear_add_norm(problem_of(operation, views, in)).kernel == AddNormKernel::stream_logits;
}

std::string Products::kernels_of(const LinearAddNormOperation& operation, int tokens) const {
  const LinearViews views(operation);
  const Matrix in = {nullptr, activations_, tokens, views.parts.front().cols};
  return kernels_of_linear_add_norm(problem_of(operation, views, in));
}

}  // namespace inferno::cuda
