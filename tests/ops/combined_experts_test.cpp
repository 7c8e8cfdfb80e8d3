// A mixture of experts between two norms: a backend may compute the router while it adds the previous branch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

#include "ops/backends.h"
#include "ops/reference.h"
#include "support/compare.h"
#include "tolerance.h"

namespace inferno {
namespace {

struct Case {
  MoeMlp spec;
  WeightFormat format = WeightFormat::bf16, router = WeightFormat::bf16;
  int width = 256, before = 512, tokens = 1;
  bool split_gate_up = false;  // two parts of `hidden` rows instead of one of twice as many
  double min_share = 0.0;      // minimum weight of every chosen expert, so that a missing one shows
};

class Scene {
 public:
  Scene(Device& device, const Case& c)
      : device_(device),
        case_(c),
        out_(device.weight({.format = WeightFormat::bf16, .rows = c.width, .cols = c.before}, 91)),
        router_(device.weight({.format = c.router, .rows = c.spec.experts, .cols = c.width}, 92)),
        down_(device.weight(
            {.format = c.format, .count = c.spec.experts, .rows = c.width, .cols = c.spec.hidden}, 94)),
        gain_(random_matrix(1, c.width, 0.5, 95)),
        router_bias_(random_matrix(1, c.spec.experts, 0.5, 96)),
        up_bias_(random_matrix(c.spec.experts, 2 * c.spec.hidden, 0.5, 97)),
        down_bias_(random_matrix(c.spec.experts, c.width, 0.5, 98)) {
    for (double& value : gain_.values) value += 1.0;
    const int parts = c.split_gate_up ? 2 : 1;
    for (int part = 0; part < parts; ++part) {
      gate_up_.push_back(&device.weight(
          {.format = c.format, .count = c.spec.experts, .rows = 2 * c.spec.hidden / parts, .cols = c.width},
          93 + 100 * static_cast<std::uint64_t>(part)));
    }
    std::uint64_t seed = 500;
    do {  // until rounding cannot change the choice
      in_ = random_matrix(c.tokens, c.before, 1.0, seed++);
      residual_ = random_matrix(c.tokens, c.width, 1.0, seed++);
      device.upload(in_, device.activations());
      device.upload(residual_, DType::f32);
    } while (smallest_margin() < 0.1 || smallest_share() < c.min_share);
  }

  void expect_agreement() {
    const DType type = device_.activations();
    const Norm norm = {
        .kind = NormKind::rms, .epsilon = 1e-5f, .gain = device_.upload(gain_, DType::f32), .bias = {}};
    Linear gate_up = {{}, device_.upload(up_bias_, DType::f32)};
    for (const TestWeight* part : gate_up_) gate_up.parts.push_back(&part->packed);
    const MoeWeights weights = {.router = {{&router_.packed}, device_.upload(router_bias_, DType::f32)},
                                .gate_up = gate_up,
                                .down = {{&down_.packed}, device_.upload(down_bias_, DType::f32)}};
    const Matrix residual = device_.upload(residual_, DType::f32);
    const Matrix routed = device_.poisoned(case_.tokens, case_.width, DType::f32);
    const Matrix out = device_.poisoned(case_.tokens, case_.width, type);
    const Matrix taken = device_.poisoned(case_.tokens, case_.width, type);
    AfterBranch then = {.out = routed,
                        .residual = residual,
                        .branch = device_.poisoned(case_.tokens, case_.width, DType::f32),
                        .scale = 1.0f,
                        .norm = &norm,
                        .router = &weights.router};
    NormedRows rows_to_mix =
        device_.backend().linear_add_norm(then, device_.upload(in_, type), {{&out_.packed}, {}});
    then.out = out;
    then.router = nullptr;
    NormedRows mixed_rows =
        device_.backend().mix_experts_add_norm(then, std::move(rows_to_mix), case_.spec, weights);
    std::vector<std::int32_t> rows(static_cast<std::size_t>(case_.tokens));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int32_t>(i);
    device_.backend().take_rows(taken, std::move(mixed_rows), device_.upload(rows));

    HostMatrix expected = after_attention();
    std::vector<reference::Expert> experts;
    for (int e = 0; e < case_.spec.experts; ++e) {
      const auto at = static_cast<std::size_t>(e);
      HostMatrix stacked(0, case_.width);
      for (const TestWeight* part : gate_up_) stacked.append(part->values[at]);
      experts.push_back({stacked, down_.values[at], up_bias_.row(e), down_bias_.row(e)});
    }
    const HostMatrix rows_in = normed(expected);
    const HostMatrix mixed = reference::mix(rows_in, logits(rows_in), case_.spec, experts);
    for (std::size_t i = 0; i < expected.values.size(); ++i) expected.values[i] += mixed.values[i];
    EXPECT_TRUE(agrees(device_.download(residual), expected, 2 * relative_tolerance(type)));
    EXPECT_TRUE(agrees(device_.download(taken), normed(expected), 2 * relative_tolerance(type)));
  }

 private:
  HostMatrix after_attention() const {
    HostMatrix out = reference::linear(in_, out_.values.front(), {});
    for (std::size_t i = 0; i < out.values.size(); ++i) out.values[i] += residual_.values[i];
    return out;
  }
  HostMatrix normed(HostMatrix rows) const {
    for (int r = 0; r < case_.tokens; ++r) {
      reference::norm(rows.row(r),
                      {.kind = NormKind::rms, .epsilon = 1e-5f, .gain = gain_.values, .bias = {}});
    }
    return rows;
  }
  HostMatrix logits(const HostMatrix& rows) const {
    return reference::linear(rows, router_.values.front(), router_bias_.values);
  }
  double smallest_margin() const {
    const HostMatrix all = logits(normed(after_attention()));
    double least = 1e9;
    for (int r = 0; r < case_.tokens; ++r)
      least = std::min(least, reference::margin(all.row(r), case_.spec.active));
    return least;
  }

  double smallest_share() const {
    HostMatrix all = logits(normed(after_attention()));
    double least = 1.0;
    for (int r = 0; r < case_.tokens; ++r) {
      const auto row = all.row(r);
      std::ranges::sort(row, std::greater{});
      double sum = 0.0;
      for (int k = 0; k < case_.spec.active; ++k) sum += std::exp(row[static_cast<std::size_t>(k)] - row[0]);
      least = std::min(least, std::exp(row[static_cast<std::size_t>(case_.spec.active) - 1] - row[0]) / sum);
    }
    return least;
  }

  Device& device_;
  Case case_;
  const TestWeight &out_, &router_, &down_;
  std::vector<const TestWeight*> gate_up_;
  HostMatrix gain_, router_bias_, up_bias_, down_bias_, in_, residual_;
};

MoeMlp spec(int experts, int active, int hidden) {
  return {.experts = experts,
          .active = active,
          .hidden = hidden,
          .activation = {.kind = Activation::silu, .gated = true},
          .router_bias = true,
          .expert_bias = true};
}

class MixExpertsAddNorm : public FormatTest {};

TEST_P(MixExpertsAddNorm, AgreesInEveryFormat) {
  if (is_turn(0)) Scene(device, {.spec = spec(6, 2, 256), .format = format}).expect_agreement();
  if (is_turn(1)) Scene(device, {.spec = spec(6, 3, 512), .format = format, .tokens = 3}).expect_agreement();
}

class ManyExperts : public BackendTest {};

TEST_P(ManyExperts, AgreeHoweverManyAreChosen) {
  for (const auto& [experts, active] :
       {std::pair{32, 4}, {128, 8}, {8, 2}, {40, 8}, {4, 4}, {4, 1}, {40, 10}, {40, 20}}) {
    SCOPED_TRACE(testing::Message() << active << " of " << experts);
    Scene(device, {.spec = spec(experts, active, 192)}).expect_agreement();
    Scene(device, {.spec = spec(experts, active, 192), .router = WeightFormat::f32}).expect_agreement();
    MoeMlp plain = spec(experts, active, 192);
    plain.renormalize = false;
    Scene(device, {.spec = plain}).expect_agreement();
    Scene(device, {.spec = plain, .router = WeightFormat::f16}).expect_agreement();
  }
}

TEST_P(ManyExperts, AgreeAmongHundreds) {
  Scene(device, {.spec = spec(256, 6, 64)}).expect_agreement();
}

TEST_P(ManyExperts, AgreeWhereAnOddNumberIsChosen) {
  for (const WeightFormat format :
       {WeightFormat::bf16, WeightFormat::f16, WeightFormat::mxfp4, WeightFormat::q8_0, WeightFormat::q4_k,
        WeightFormat::q4_0, WeightFormat::int4_128, WeightFormat::fp8_128, WeightFormat::nvfp4_64}) {
    SCOPED_TRACE(name_of(format));
    Scene(device, {.spec = spec(8, 3, 256), .format = format, .min_share = 0.08}).expect_agreement();
    Scene(device, {.spec = spec(33, 5, 256), .format = format, .min_share = 0.08}).expect_agreement();
    Scene(device, {.spec = spec(4, 1, 256), .format = format}).expect_agreement();
  }
}

// A streaming kernel splits rows with this many columns: those of gate and up, then those of down.
TEST_P(ManyExperts, AgreeWhereRowsAreLong) {
  for (const WeightFormat format :
       {WeightFormat::bf16, WeightFormat::mxfp4, WeightFormat::q8_0, WeightFormat::q4_k, WeightFormat::q4_0,
        WeightFormat::int4_128, WeightFormat::int8_64, WeightFormat::fp8_128, WeightFormat::nvfp4_64}) {
    SCOPED_TRACE(name_of(format));
    Scene(device, {.spec = spec(4, 2, 256), .format = format, .width = 8192, .before = 64})
        .expect_agreement();
    Scene(device, {.spec = spec(4, 3, 8192), .format = format}).expect_agreement();
  }
}

// On a GPU the output projection computes the router's logits, but no streaming kernel for Q6_K reads them.
TEST_P(ManyExperts, AgreeAfterUnreadRouterLogits) {
  Scene(device, {.spec = spec(8, 2, 256), .format = WeightFormat::q6_k}).expect_agreement();
  Scene(device, {.spec = spec(8, 2, 256)}).expect_agreement();
}

// Every result sums the rows of sixteen experts, and a block gets more rows than fit at once.
TEST_P(ManyExperts, AgreeWhereABlockSumsTheirRowsInTurns) {
  Scene(device, {.spec = spec(16, 16, 64), .width = 2176, .before = 64}).expect_agreement();
  Scene(device, {.spec = spec(4, 4, 320), .width = 6400, .before = 64}).expect_agreement();
}

// On a GPU several blocks route each token; rows of more than 4,096 columns do not fit in their registers.
TEST_P(ManyExperts, AgreeForSeveralTokens) {
  for (const auto& [experts, active, width] : {std::tuple{33, 5, 264}, {3, 1, 8}, {3, 2, 4104}}) {
    SCOPED_TRACE(testing::Message() << active << " of " << experts << ", width " << width);
    Scene(device, {.spec = spec(experts, active, 64), .width = width, .before = 64, .tokens = 2})
        .expect_agreement();
  }
}

TEST_P(ManyExperts, AgreeForTokensOfLargerModels) {
  for (const auto& [experts, active, width] :
       {std::tuple{32, 4, 256}, {128, 8, 256}, {4, 2, 2880}, {4, 2, 8192}}) {
    for (const WeightFormat router : {WeightFormat::bf16, WeightFormat::f32}) {
      SCOPED_TRACE(testing::Message() << active << " of " << experts << ", width " << width);
      Case c = {.spec = spec(experts, active, 64), .router = router, .width = width, .before = 64};
      c.tokens = 2;
      Scene(device, c).expect_agreement();
      c.spec.renormalize = false;
      c.tokens = experts < 10 ? 7 : 3;
      Scene(device, c).expect_agreement();
    }
  }
}

TEST_P(ManyExperts, AgreeWhereGateAndUpAreTwoParts) {
  Scene(device, {.spec = spec(8, 2, 192), .split_gate_up = true}).expect_agreement();
}

TEST_P(ManyExperts, AgreeAtTheShapeOfGptOss) {
  MoeMlp shape = spec(8, 4, 2880);
  shape.activation = {.kind = Activation::swiglu_clamped, .gated = true, .limit = 7.0f};
  Scene(device, {.spec = shape, .format = WeightFormat::mxfp4, .width = 2880, .before = 4096})
      .expect_agreement();
}

INSTANTIATE_TEST_SUITE_P(Formats, MixExpertsAddNorm,
                         testing::Combine(testing::ValuesIn(backend_names()),
                                          testing::ValuesIn(format_names())),
                         backend_and_format_test_name);
INSTANTIATE_TEST_SUITE_P(Backends, ManyExperts, testing::ValuesIn(backend_names()), backend_test_name);

}  // namespace
}  // namespace inferno
