#include "backend/cuda/single_token.h"

#include <vector>

namespace inferno::cuda {

void SingleToken::reserve() {
  has_logits_ = false;
  if (queue_.overlaps) clear_sums(queue_, room().router_sums);
}

SingleToken::Room SingleToken::divide(Parts& parts) {
  Room out = {};
  out.squares = parts.take<float>(stream_max_blocks);
  out.router_sums = parts.take<std::int64_t>(stream_max_experts);
  out.shares = parts.take<float>(stream_max_active);
  out.chosen = parts.take<std::int32_t>(stream_max_active);
  return out;
}

std::size_t SingleToken::reserved_bytes() {
  Parts measure(nullptr);
  divide(measure);
  return measure.used();
}

SingleToken::Room SingleToken::room() {
  Parts parts(room_.at_least(reserved_bytes()));
  return divide(parts);
}

Matrix SingleToken::finish(const NormedRows& in) {
  if (in.router() != nullptr) drop_logits();
  if (in.delayed()) finish_norm(queue_, in.unfinished(), *in.delayed());
  return in.unfinished();
}

void SingleToken::drop_logits() {
  if (has_logits_) clear_sums(queue_, room().router_sums);
  has_logits_ = false;
}

AddTo SingleToken::add_to(const AfterBranch& then, bool sums_logits) {
  const Room own = room();
  drop_logits();
  AddTo add = {.residual = reinterpret_cast<float*>(then.residual.data),
               .gain = reinterpret_cast<const float*>(then.norm->gain.data),
               .scale = then.scale,
               .squares = own.squares};
  if (sums_logits) {
    add.router = then.router->parts.front();
    add.router_sums = own.router_sums;
    add.undecided = own.chosen;
  }
  return add;
}

NormedRows SingleToken::delayed(const AfterBranch& then, const Weight* router) {
  has_logits_ = router != nullptr;
  const DelayedNorm norm = {.squares = room().squares,
                            .parts = stream_blocks(queue_, then.out.cols),
                            .per_width = 1.0f / static_cast<float>(then.out.cols),
                            .epsilon = then.norm->epsilon};
  return {then.out, norm, router};
}

NormedRows SingleToken::linear_add_norm(const AfterBranch& then, Matrix in, const Linear& weights,
                                        bool sums_logits) {
  const AddTo add = add_to(then, sums_logits);
  stream_add(queue_, view(*weights.parts.front()), then.out, {in, {}}, bias_of(weights), add);
  return delayed(then, add.router);
}

NormedRows SingleToken::mix_experts_add_norm(const AfterBranch& then, const NormedRows& in, Matrix hidden,
                                             const MoeMlp& spec, const MoeWeights& weights) {
  const std::vector<WeightView> up = views(weights.gate_up);
  const Room own = room();
  const Routing routing = {
      .sums = own.router_sums,
      .bias = bias_of(weights.router),
      .experts = spec.experts,
      .active = spec.active,
      .renormalizes = spec.renormalize,
      .chosen = own.chosen,
      .shares = own.shares,
      .hidden_scale = stream_hidden_scale(view(*weights.down.parts.front()), spec.activation)};
  stream_experts(queue_, up, hidden, stream_input(in), weights.gate_up, spec.activation, routing);
  has_logits_ = false;  // stream_combine makes the sums zero
  // Logits would be added while stream_combine makes the sums zero.
  stream_combine(queue_, view(*weights.down.parts.front()), then.out, {hidden, {}}, weights.down, routing,
                 add_to(then, /*sums_logits=*/false));
  return delayed(then, nullptr);
}

}  // namespace inferno::cuda
