#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "backend/cpu/scene.h"

namespace inferno::cpu {
namespace {

// One row times rows [first, first + count) of the weight's values.
std::vector<double> apply(const std::vector<double>& in, const std::vector<float>& values, int first,
                          int count) {
  std::vector<double> out;
  for (int r = first; r < first + count; ++r) {
    const float* row = values.data() + static_cast<std::size_t>(r) * in.size();
    out.push_back(std::inner_product(in.begin(), in.end(), row, 0.0, std::plus<>(),
                                     [](double a, float b) { return a * static_cast<double>(b); }));
  }
  return out;
}

struct Case {
  int experts, active, tokens;
  bool renormalize, bias, split;
  WeightFormat format;
};

struct Mixture {
  Scene& scene;
  MoeMlp spec;
  MoeWeights weights;
  int width;

  std::vector<double> expert(const std::vector<double>& in, int e) const {
    std::vector<double> wide;
    for (const Weight* part : weights.gate_up.parts) {
      const auto rows = apply(in, scene.values(*part), e * part->rows, part->rows);
      wide.insert(wide.end(), rows.begin(), rows.end());
    }
    const auto hidden = static_cast<std::size_t>(spec.hidden);
    std::vector<double> middle(hidden);
    for (std::size_t i = 0; i < wide.size() && weights.gate_up.bias; ++i) {
      wide[i] += static_cast<double>(floats(weights.gate_up.bias, e)[i]);
    }
    for (std::size_t i = 0; i < hidden; ++i)
      middle[i] = wide[i] / (1.0 + std::exp(-wide[i])) * wide[hidden + i];
    std::vector<double> out = apply(middle, scene.values(*weights.down.parts[0]), e * width, width);
    for (std::size_t i = 0; i < out.size() && weights.down.bias; ++i) {
      out[i] += static_cast<double>(floats(weights.down.bias, e)[i]);
    }
    return out;
  }

  std::vector<double> mix(const std::vector<double>& in) const {
    std::vector<double> logits = apply(in, scene.values(*weights.router.parts[0]), 0, spec.experts);
    for (std::size_t e = 0; e < logits.size() && weights.router.bias; ++e) {
      logits[e] += static_cast<double>(floats(weights.router.bias)[e]);
    }
    std::vector<std::size_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
    double sum = 0.0;
    for (int k = 0; k < (spec.renormalize ? spec.active : spec.experts); ++k) {
      sum += std::exp(logits[order[static_cast<std::size_t>(k)]]);
    }
    std::vector<double> out(static_cast<std::size_t>(width));
    for (int k = 0; k < spec.active; ++k) {
      const std::size_t e = order[static_cast<std::size_t>(k)];
      const std::vector<double> part = expert(in, static_cast<int>(e));
      for (std::size_t c = 0; c < out.size(); ++c) out[c] += std::exp(logits[e]) / sum * part[c];
    }
    return out;
  }
};

void check(IsaLevel level, const Case& c) {
  Scene scene(level);
  Mixture mixture = {scene, {}, {}, 64};
  mixture.spec = {.experts = c.experts,
                  .active = c.active,
                  .hidden = 96,
                  .activation = {},
                  .router_bias = c.bias,
                  .expert_bias = c.bias,
                  .renormalize = c.renormalize};
  MoeWeights& weights = mixture.weights;
  weights.router.parts = {&scene.random_weight(WeightFormat::f32, c.experts, 64)};
  if (c.split) {
    weights.gate_up.parts = {&scene.random_weight(c.format, 96, 64, c.experts),
                             &scene.random_weight(WeightFormat::q8_0, 96, 64, c.experts)};
  } else {
    weights.gate_up.parts = {&scene.random_weight(c.format, 192, 64, c.experts)};
  }
  weights.down.parts = {&scene.random_weight(c.format, 64, 96, c.experts)};
  if (c.bias) {
    weights.router.bias = scene.random(1, c.experts);
    weights.gate_up.bias = scene.random(c.experts, 192);
    weights.down.bias = scene.random(c.experts, 64);
  }
  const Matrix in = scene.random(c.tokens, 64, 0.2f), out = scene.random(c.tokens, 64);
  std::vector<double> expected;
  for (int t = 0; t < c.tokens; ++t) {
    const auto row = mixture.mix({floats(in, t), floats(in, t) + 64});
    expected.insert(expected.end(), row.begin(), row.end());
  }
  scene.backend->mix_experts(out, in, mixture.spec, weights);
  EXPECT_LT(relative_error(out, expected), 1e-4);
}

class ExpertsAtLevel : public testing::TestWithParam<IsaLevel> {};

TEST_P(ExpertsAtLevel, MixesTheChosenOnes) {
  check(GetParam(), {8, 2, 5, true, false, false, WeightFormat::f32});
}
TEST_P(ExpertsAtLevel, AddsBiasesOfRouterAndExperts) {
  check(GetParam(), {6, 3, 40, true, true, false, WeightFormat::mxfp4});
}
TEST_P(ExpertsAtLevel, SharesOutOverAllExpertsWhenNotRenormalized) {
  check(GetParam(), {8, 2, 7, false, false, false, WeightFormat::q4_0});
}
TEST_P(ExpertsAtLevel, TakesGateAndUpInTwoPartsOfDifferentFormats) {
  check(GetParam(), {4, 1, 9, true, true, true, WeightFormat::bf16});
}
TEST_P(ExpertsAtLevel, RunsOneTokenAndAllExperts) {
  check(GetParam(), {4, 4, 1, true, false, false, WeightFormat::q8_0});
}

INSTANTIATE_TEST_SUITE_P(Cpu, ExpertsAtLevel, testing::ValuesIn(levels_here()), level_name);

}  // namespace
}  // namespace inferno::cpu
