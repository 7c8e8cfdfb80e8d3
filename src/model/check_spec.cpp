#include "model/check_spec.h"

#include <fmt/format.h>

#include <cmath>

namespace inferno {
namespace {

class Problems {
 public:
  template <class... Args>
  void unless(bool good, fmt::format_string<Args...> text, Args&&... args) {
    if (!good) list_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }
  std::vector<std::string> take() { return std::move(list_); }

 private:
  std::vector<std::string> list_;
};

// Larger than anything that exists, small enough that no product of two of them leaves 64 bits and no
// activation row leaves 32.
constexpr int max_features = 1 << 22;
constexpr int max_positions = 1 << 24;

void check(Problems& problems, const AttentionSpec& a, std::size_t layer) {
  problems.unless(a.heads % a.kv_heads == 0,
                  "layer {}: {} attention heads are not a multiple of {} key/value heads", layer, a.heads,
                  a.kv_heads);
  const auto features = (static_cast<std::int64_t>(a.heads) + 2 * std::int64_t{a.kv_heads}) * a.head_dim;
  problems.unless(features <= max_features, "layer {}: {} heads of {} are too many features", layer, a.heads,
                  a.head_dim);
  problems.unless(std::isfinite(a.scale), "layer {}: the attention scale is not finite", layer);
}

void check(Problems& problems, const DenseMlp& mlp, std::size_t layer) {
  problems.unless(mlp.hidden <= max_features, "layer {}: an MLP of {} features is too large", layer,
                  mlp.hidden);
}

void check(Problems& problems, const MoeMlp& mlp, std::size_t layer) {
  problems.unless(mlp.hidden <= max_features, "layer {}: experts of {} features are too large", layer,
                  mlp.hidden);
  problems.unless(mlp.experts <= 65536, "layer {}: {} experts are too many", layer, mlp.experts);
  problems.unless(mlp.active <= mlp.experts, "layer {}: {} of {} experts cannot be active", layer, mlp.active,
                  mlp.experts);
  problems.unless(mlp.activation.kind != Activation::swiglu_clamped || mlp.activation.limit > 0.0f,
                  "layer {}: the clamp {} is not positive", layer, mlp.activation.limit);
}

void check_factors(Problems& problems, const std::vector<float>& factors, int dims, std::string_view name) {
  problems.unless(factors.size() == static_cast<std::size_t>(dims / 2),
                  "rotary scaling: expected {} {} factors, found {}", dims / 2, name, factors.size());
  for (const float factor : factors) {
    problems.unless(factor > 0.0f && std::isfinite(factor), "rotary scaling: {} factor {} is not positive",
                    name, factor);
  }
}

void check(Problems& problems, const Rope& rope, int head_dim) {
  problems.unless(rope.dims > 0 && rope.dims <= head_dim && rope.dims % 2 == 0,
                  "{} rotated dimensions of a head of {}: expected an even number, at most all", rope.dims,
                  head_dim);
  problems.unless(rope.theta > 0.0f && std::isfinite(rope.theta), "rotary base {} is not positive",
                  rope.theta);
  if (const auto* factors = std::get_if<FactorScaling>(&rope.scaling)) {
    check_factors(problems, factors->factors, rope.dims, "frequency");
  }
  if (const auto* scaling = std::get_if<LongRopeScaling>(&rope.scaling)) {
    check_factors(problems, scaling->short_factors, rope.dims, "short");
    check_factors(problems, scaling->long_factors, rope.dims, "long");
  }
  if (const auto* scaling = std::get_if<Llama3Scaling>(&rope.scaling)) {
    problems.unless(scaling->high_freq_factor > scaling->low_freq_factor,
                    "rotary scaling: high_freq_factor {} is not above low_freq_factor {}",
                    scaling->high_freq_factor, scaling->low_freq_factor);
  }
}

void check(Problems&, const LearnedPositions&, int) {}

}  // namespace

std::vector<std::string> spec_problems(const ModelSpec& spec) {
  Problems problems;
  problems.unless(spec.width <= max_features, "a width of {} is too large", spec.width);
  problems.unless(spec.vocab <= 1 << 24, "a vocabulary of {} is too large", spec.vocab);
  problems.unless(spec.context <= max_positions, "a context of {} is too long", spec.context);
  problems.unless(spec.norm_epsilon >= 0.0f && spec.norm_epsilon < 1.0f,
                  "a norm epsilon of {} makes no sense", spec.norm_epsilon);
  problems.unless(!(spec.tied_head && spec.head_bias), "a tied head with a bias is not supported");
  for (std::size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    const BlockSpec& block = spec.blocks[layer];
    if (layer > 0 && block == spec.blocks[layer - 1]) continue;  // say it once
    check(problems, block.attention, layer);
    std::visit([&](const auto& mlp) { check(problems, mlp, layer); }, block.mlp);
    std::visit([&](const auto& p) { check(problems, p, block.attention.head_dim); }, spec.positions);
  }
  return problems.take();
}

}  // namespace inferno
