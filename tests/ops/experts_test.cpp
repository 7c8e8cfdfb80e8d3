// mix_experts: routing, shares, biases, every format, one and many tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "ops/backends.h"
#include "ops/reference.h"
#include "support/compare.h"
#include "tolerance.h"

namespace inferno {
namespace {

struct Case {
  MoeMlp spec;
  WeightFormat format = WeightFormat::f32;
  int width = 96;
  int tokens = 7;
  bool split_gate_up = false;  // two parts of `hidden` rows instead of one of twice as many
  bool has_favourite = false;  // every token chooses expert 1
  WeightFormat router = WeightFormat::f32;
  bool float_input = false;                       // as decoders have it, whatever the products read
  double least_margin = 0.05, most_margin = 1e9;  // between the logits of the last expert chosen and the next
};

class Scene {
 public:
  Scene(Device& device, const Case& c) : device_(device), case_(c) {
    const MoeMlp& spec = c.spec;
    const int wide = spec.activation.gated ? 2 * spec.hidden : spec.hidden;
    add_part(router_, {.format = c.router, .rows = spec.experts, .cols = c.width}, 71);
    const int up_parts = c.split_gate_up ? 2 : 1;
    for (int part = 0; part < up_parts; ++part) {
      add_part(gate_up_,
               {.format = c.format, .count = spec.experts, .rows = wide / up_parts, .cols = c.width},
               72 + static_cast<std::uint64_t>(part));
    }
    add_part(down_, {.format = c.format, .count = spec.experts, .rows = c.width, .cols = spec.hidden}, 74);
    if (spec.router_bias || c.has_favourite)
      add_bias(router_, 1, spec.experts, 75, c.has_favourite ? 100.0 : 0.0);
    if (spec.expert_bias) {
      add_bias(gate_up_, spec.experts, wide, 76);
      add_bias(down_, spec.experts, c.width, 77);
    }
    choose_input();
  }

  HostMatrix found() {
    const Matrix in = device_.upload(input_, case_.float_input ? DType::f32 : device_.activations());
    const Matrix out = device_.poisoned(case_.tokens, case_.width, device_.activations());
    device_.backend().mix_experts(
        out, in, case_.spec, {.router = router_.weights, .gate_up = gate_up_.weights, .down = down_.weights});
    return device_.download(out);
  }

  HostMatrix expected() const {
    std::vector<reference::Expert> experts;
    for (int e = 0; e < case_.spec.experts; ++e) {
      experts.push_back({gate_up_.of(e), down_.of(e), gate_up_.bias_of(e), down_.bias_of(e)});
    }
    return reference::mix(input_, logits(input_), case_.spec, experts);
  }

 private:
  struct Layer {
    Linear weights;
    std::vector<const TestWeight*> parts;
    HostMatrix bias;

    HostMatrix of(int expert) const {
      HostMatrix stacked(0, parts.front()->values.front().cols);
      for (const TestWeight* part : parts) stacked.append(part->values[static_cast<std::size_t>(expert)]);
      return stacked;
    }
    std::span<const double> bias_of(int expert) const {
      return bias.values.empty() ? std::span<const double>{} : bias.row(expert);
    }
  };

  void add_part(Layer& layer, const WeightShape& shape, std::uint64_t seed) {
    layer.parts.push_back(&device_.weight(shape, seed));
    layer.weights.parts.push_back(&layer.parts.back()->packed);
  }
  // `favour`: how much more the second one has.
  void add_bias(Layer& layer, int rows, int cols, std::uint64_t seed, double favour = 0.0) {
    layer.bias = random_matrix(rows, cols, 1.0, seed);
    if (favour != 0.0) layer.bias.values[1] = favour;
    layer.weights.bias = device_.upload(layer.bias, DType::f32);
  }
  HostMatrix logits(const HostMatrix& input) const {
    return reference::linear(input, router_.of(0), router_.bias_of(0));
  }
  // Tokens whose choice of experts no rounding can change.
  void choose_input() {
    input_ = HostMatrix(case_.tokens, case_.width);
    std::uint64_t seed = 1000;
    for (int r = 0; r < case_.tokens; ++r) {
      HostMatrix token;
      double margin = 0.0;
      do {
        token = random_matrix(1, case_.width, 0.5, seed++);
        if (!case_.float_input) device_.upload(token, device_.activations());
        margin = reference::margin(logits(token).row(0), case_.spec.active);
      } while (margin < case_.least_margin || margin > case_.most_margin);
      std::ranges::copy(token.values, input_.row(r).begin());
    }
  }

  Device& device_;
  Case case_;
  Layer router_, gate_up_, down_;
  HostMatrix input_;
};

void expect_agreement(Device& device, const Case& c) {
  SCOPED_TRACE(testing::Message() << c.spec.active << " of " << c.spec.experts << " experts, tokens "
                                  << c.tokens);
  Scene scene(device, c);
  const HostMatrix found = scene.found();
  EXPECT_TRUE(agrees(found, scene.expected(), relative_tolerance(device.activations())));
}

class MixExperts : public BackendTest {};
class MixExpertsOfFormat : public FormatTest {};

MoeMlp spec(int experts, int active) {
  return {.experts = experts,
          .active = active,
          .hidden = 32,
          .activation = {.kind = Activation::silu, .gated = true}};
}

TEST_P(MixExperts, ActivatesFromOneToAllExperts) {
  for (const int active : {1, 2, 3, 5}) {
    for (const bool renormalize : {true, false}) {
      for (const int tokens : {1, 2, 7, 33}) {
        MoeMlp some = spec(5, active);
        some.renormalize = renormalize;
        expect_agreement(device, {.spec = some, .tokens = tokens});
      }
    }
  }
}

TEST_P(MixExperts, LeavesSomeExpertsWithoutTokens) {
  expect_agreement(device, {.spec = spec(32, 2), .tokens = 1});
  expect_agreement(device, {.spec = spec(32, 2), .tokens = 5});
}

TEST_P(MixExperts, AddsTheBiasesOfRouterAndExperts) {
  for (const int tokens : {1, 33}) {
    MoeMlp routed = spec(5, 2);
    routed.router_bias = true;
    expect_agreement(device, {.spec = routed, .tokens = tokens});
    MoeMlp biased = spec(5, 2);
    biased.expert_bias = true;
    expect_agreement(device, {.spec = biased, .tokens = tokens});
  }
}

TEST_P(MixExperts, ClampsAsGptOssDoes) {
  MoeMlp clamped = spec(6, 4);
  clamped.activation = {.kind = Activation::swiglu_clamped, .gated = true, .limit = 2.0f};
  clamped.router_bias = clamped.expert_bias = true;
  for (const int tokens : {1, 33}) {
    expect_agreement(device, {.spec = clamped, .tokens = tokens});
    expect_agreement(
        device, {.spec = clamped, .format = WeightFormat::mxfp4, .tokens = tokens, .split_gate_up = true});
  }
}

TEST_P(MixExperts, TakesGateAndUpAsTwoParts) {
  for (const int tokens : {1, 7})
    expect_agreement(device, {.spec = spec(4, 2), .tokens = tokens, .split_gate_up = true});
}

TEST_P(MixExperts, TakesExpertsWithoutAGate) {
  MoeMlp plain = spec(4, 2);
  plain.activation = {.kind = Activation::gelu_erf, .gated = false};
  for (const int tokens : {1, 7}) expect_agreement(device, {.spec = plain, .tokens = tokens});
}

TEST_P(MixExperts, TakesExpertsWhoseRowsAreNoMultipleOfEight) {
  MoeMlp ragged = spec(5, 2);
  ragged.hidden = 20;
  for (const WeightFormat format : {WeightFormat::bf16, WeightFormat::f16, WeightFormat::f32}) {
    for (const int tokens : {1, 7, 33}) {
      expect_agreement(device, {.spec = ragged, .format = format, .width = 36, .tokens = tokens});
      expect_agreement(
          device, {.spec = ragged, .format = format, .width = 36, .tokens = tokens, .split_gate_up = true});
    }
  }
}

TEST_P(MixExperts, TakesManyTokens) {
  expect_agreement(device, {.spec = spec(4, 2), .tokens = 100});
}

// Sorted by expert, each has more than a tile of 128 and a ragged rest.
TEST_P(MixExperts, TakesMoreTokensThanATileForEachExpert) {
  MoeMlp biased = spec(4, 2);
  biased.hidden = 72;
  biased.expert_bias = true;
  for (const WeightFormat format : {WeightFormat::bf16, WeightFormat::f16}) {
    expect_agreement(device, {.spec = biased, .format = format, .width = 136, .tokens = 333});
  }
}

TEST_P(MixExpertsOfFormat, Agrees) {
  MoeMlp some = spec(3, 2);
  some.hidden = std::max(32, block_elements(format));
  const int width = std::max(96, block_elements(format));
  for (const int tokens : {1, 5}) {
    const bool split = tokens == 1;
    expect_agreement(
        device, {.spec = some, .format = format, .width = width, .tokens = tokens, .split_gate_up = split});
  }
}

// From two tokens on an expert's tokens are multiplied in groups, up to 24 of them; with very many, in tiles
// of 128.
constexpr int batches[] = {2, 8, 9, 17, 33, 64, 130};

TEST_P(MixExpertsOfFormat, AgreesForBatchesOfEverySize) {
  MoeMlp some = spec(6, 2);
  some.hidden = std::max(96, block_elements(format));
  some.expert_bias = true;
  const int width = std::max(160, block_elements(format));
  int turn = 0;
  for (const int tokens : batches) {
    if (!is_turn(turn++)) continue;
    expect_agreement(
        device,
        {.spec = some, .format = format, .width = width, .tokens = tokens, .split_gate_up = tokens % 2 == 1});
  }
}

TEST_P(MixExperts, TakesBatchesThatAllChooseTheSameExpert) {
  for (const int tokens : batches) {
    expect_agreement(device, {.spec = spec(12, 1),
                              .format = WeightFormat::mxfp4,
                              .width = 64,
                              .tokens = tokens,
                              .has_favourite = true});
    expect_agreement(device, {.spec = spec(8, 2),
                              .format = WeightFormat::bf16,
                              .width = 64,
                              .tokens = tokens,
                              .has_favourite = true});
  }
}

TEST_P(MixExperts, TakesBatchesWithMoreExpertsThanTokens) {
  for (const int tokens : {2, 9, 17}) {
    expect_agreement(device, {.spec = spec(100, 3), .format = WeightFormat::mxfp4, .tokens = tokens});
    expect_agreement(device, {.spec = spec(100, 3), .format = WeightFormat::q8_0, .tokens = tokens});
  }
}

// Columns that end within a chunk, rows that end within a pair of tiles and within a tile.
TEST_P(MixExperts, TakesBatchesOfOddShapes) {
  for (const auto& [hidden, width] : {std::pair{24, 40}, {72, 136}, {40, 64}, {200, 8}}) {
    for (const int tokens : {2, 9, 33, 64}) {
      SCOPED_TRACE(testing::Message() << "hidden " << hidden << ", width " << width);
      MoeMlp odd = spec(5, 2);
      odd.hidden = hidden;
      odd.expert_bias = true;
      expect_agreement(device, {.spec = odd, .format = WeightFormat::bf16, .width = width, .tokens = tokens});
      expect_agreement(device, {.spec = odd,
                                .format = WeightFormat::f16,
                                .width = width,
                                .tokens = tokens,
                                .split_gate_up = true});
    }
  }
  MoeMlp ragged = spec(5, 2);
  ragged.hidden = 28;  // of two parts: rows that are no whole tile
  for (const int tokens : {2, 33}) {
    expect_agreement(
        device,
        {.spec = ragged, .format = WeightFormat::bf16, .width = 64, .tokens = tokens, .split_gate_up = true});
  }
}

// More hidden elements than a group of 24 tokens finds room for: they come in slabs.
TEST_P(MixExperts, TakesBatchesOfManyHiddenElements) {
  for (const WeightFormat format : {WeightFormat::bf16, WeightFormat::mxfp4, WeightFormat::q4_k}) {
    MoeMlp large = spec(3, 1);
    large.hidden = 5120;
    large.expert_bias = true;
    const int width = format == WeightFormat::q4_k ? 256 : 64;
    for (const int tokens : {4, 50}) {
      expect_agreement(device, {.spec = large, .format = format, .width = width, .tokens = tokens});
    }
  }
}

TEST_P(MixExperts, TakesBatchesAtHalfTheWidthOfGptOss) {
  MoeMlp shape = spec(3, 2);
  shape.hidden = 1440;
  shape.activation = {.kind = Activation::swiglu_clamped, .gated = true, .limit = 7.0f};
  shape.router_bias = shape.expert_bias = true;
  expect_agreement(device, {.spec = shape, .format = WeightFormat::mxfp4, .width = 1440, .tokens = 24});
}

// Prompts whose experts are decoded where they are multiplied: whole chunks of 64 columns, one and several,
// rows that end within 128, and tokens by the 64, 128 and 256 with every kind of rest.
TEST_P(MixExperts, TakesPromptsOfMxfp4) {
  for (const auto& [hidden, width] : {std::pair{64, 64}, {128, 192}, {192, 320}, {704, 576}}) {
    for (const int tokens : {50, 97, 130, 260, 385, 520}) {
      SCOPED_TRACE(testing::Message() << "hidden " << hidden << ", width " << width);
      MoeMlp some = spec(3, 2);
      some.hidden = hidden;
      some.expert_bias = tokens % 2 == 0;
      if (tokens % 3 == 1)
        some.activation = {.kind = Activation::swiglu_clamped, .gated = true, .limit = 7.0f};
      expect_agreement(device, {.spec = some,
                                .format = WeightFormat::mxfp4,
                                .width = width,
                                .tokens = tokens,
                                .split_gate_up = tokens % 4 == 0});
    }
  }
}

TEST_P(MixExperts, TakesPromptsOfMxfp4WhereExpertsHaveNoTokens) {
  MoeMlp some = spec(12, 2);
  some.hidden = 128;
  expect_agreement(
      device,
      {.spec = some, .format = WeightFormat::mxfp4, .width = 64, .tokens = 400, .has_favourite = true});
  MoeMlp one = spec(5, 1);
  one.hidden = 64;
  expect_agreement(
      device,
      {.spec = one, .format = WeightFormat::mxfp4, .width = 128, .tokens = 300, .has_favourite = true});
}

// On a GPU sixteen tokens at a time, 32 columns and up to 64 experts: tails of each, in every format that
// routers have.
TEST_P(MixExperts, RoutesManyTokens) {
  constexpr WeightFormat routers[] = {WeightFormat::f32, WeightFormat::bf16, WeightFormat::f16};
  int index = 0;
  for (const int experts : {3, 32, 33, 128}) {
    for (const int width : {64, 96, 160, 136, 24, 544}) {
      const int turn = index++;
      SCOPED_TRACE(testing::Message() << "width " << width << ", router " << turn % 3);
      MoeMlp some = spec(experts, 2);
      some.router_bias = true;
      some.renormalize = turn % 2 == 0;
      Case c = {.spec = some, .width = width, .tokens = 40, .router = routers[turn % 3]};
      c.float_input = turn % 4 < 2;
      expect_agreement(device, c);
    }
  }
}

// Experts so close that with sums of bf16 products others would be chosen.
TEST_P(MixExperts, ChoosesAsFloatsDo) {
  for (const WeightFormat router : {WeightFormat::f32, WeightFormat::bf16, WeightFormat::f16}) {
    Case c = {.spec = spec(32, 2), .width = 160, .tokens = 24, .router = router, .float_input = true};
    c.least_margin = 2e-4;
    c.most_margin = 2e-3;
    expect_agreement(device, c);
  }
}

// The same before experts that are decoded where they are multiplied.
TEST_P(MixExperts, RoutesPromptsOfMxfp4) {
  for (const WeightFormat router : {WeightFormat::f32, WeightFormat::bf16}) {
    for (const auto& [experts, active, tokens] : {std::tuple{3, 2, 50}, {32, 8, 130}, {33, 8, 133}}) {
      MoeMlp some = spec(experts, active);
      some.hidden = 64;
      some.router_bias = true;
      expect_agreement(device, {.spec = some,
                                .format = WeightFormat::mxfp4,
                                .width = 192,
                                .tokens = tokens,
                                .router = router,
                                .float_input = true});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, MixExperts, testing::ValuesIn(backend_names()), backend_test_name);
INSTANTIATE_TEST_SUITE_P(Ops, MixExpertsOfFormat,
                         testing::Combine(testing::ValuesIn(backend_names()),
                                          testing::ValuesIn(format_names())),
                         backend_and_format_test_name);

}  // namespace
}  // namespace inferno
