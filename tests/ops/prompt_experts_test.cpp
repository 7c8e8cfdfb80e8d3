// mix_experts of many tokens: routing, and experts that are decoded inside the product.
#include <gtest/gtest.h>

#include <tuple>
#include <utility>

#include "ops/backends.h"
#include "ops/experts_scene.h"

namespace inferno {
namespace {

class PromptExperts : public BackendTest {};

// Prompts whose experts are decoded inside the product: one and several chunks of 64 columns, rows that are
// not multiples of 128, and tiles of 64, 128 and 256 tokens with every kind of tail.
TEST_P(PromptExperts, OfMxfp4Agree) {
  for (const auto& [hidden, width] : {std::pair{64, 320}, {128, 192}, {192, 64}, {704, 576}}) {
    for (const int tokens : {50, 97, 130, 260, 385, 520}) {
      SCOPED_TRACE(testing::Message() << "hidden " << hidden << ", width " << width);
      MoeMlp some = experts_of(3, 2);
      some.hidden = hidden;
      some.expert_bias = tokens % 2 == 0;
      if (tokens % 3 == 1)
        some.activation = {.kind = Activation::swiglu_clamped, .gated = true, .limit = 7.0f};
      expect_experts_agree(device, {.spec = some,
                                    .format = WeightFormat::mxfp4,
                                    .width = width,
                                    .tokens = tokens,
                                    .split_gate_up = tokens % 4 == 0});
    }
  }
}

TEST_P(PromptExperts, OfMxfp4WithoutTokensAgree) {
  MoeMlp some = experts_of(12, 2);
  some.hidden = 128;
  expect_experts_agree(
      device,
      {.spec = some, .format = WeightFormat::mxfp4, .width = 64, .tokens = 400, .has_favourite = true});
  MoeMlp one = experts_of(5, 1);
  one.hidden = 64;
  expect_experts_agree(
      device,
      {.spec = one, .format = WeightFormat::mxfp4, .width = 128, .tokens = 300, .has_favourite = true});
}

// More columns than the ring has stages, for both products, and more than one batch of tokens each.
TEST_P(PromptExperts, OfMxfp4AgreeWhereRowsAreLong) {
  MoeMlp some = experts_of(3, 2);
  some.hidden = 384;
  expect_experts_agree(device, {.spec = some, .format = WeightFormat::mxfp4, .width = 448, .tokens = 130});
}

// More tiles than a device has SMs, for both products: blocks take a large tile, then small ones.
TEST_P(PromptExperts, OfMxfp4AgreeWhereBlocksTakeSeveralTiles) {
  MoeMlp some = experts_of(24, 2);
  some.hidden = 512;
  some.expert_bias = true;
  expect_experts_agree(
      device,
      {.spec = some, .format = WeightFormat::mxfp4, .width = 1536, .tokens = 300, .has_favourite = true});
}

// A few tokens for each expert: every size of a GPU's tile of tokens, with shares on both sides of its
// border; rows that do not fill the last tile of weights, and columns that do not fill the last stage.
TEST_P(PromptExperts, OfMxfp4AgreeForFewTokens) {
  for (const auto& [hidden, width] : {std::pair{64, 64}, {192, 320}, {704, 192}}) {
    for (const int tokens : {8, 9, 17, 24, 31, 33, 48, 63, 65, 96, 130, 161}) {
      SCOPED_TRACE(testing::Message() << "hidden " << hidden << ", width " << width);
      MoeMlp some = experts_of(6, 2);
      some.hidden = hidden;
      some.expert_bias = tokens % 2 == 0;
      some.activation = {.kind = Activation::swiglu_clamped, .gated = true, .limit = 7.0f};
      expect_experts_agree(device, {.spec = some,
                                    .format = WeightFormat::mxfp4,
                                    .width = width,
                                    .tokens = tokens,
                                    .split_gate_up = tokens % 3 == 0,
                                    .float_input = tokens % 4 < 2});
    }
  }
}

// Experts without tokens, and one with far more than a tile holds.
TEST_P(PromptExperts, OfMxfp4AgreeForFewTokensOfOneExpert) {
  for (const auto& [experts, active] : {std::pair{1, 1}, {12, 1}, {33, 2}}) {
    for (const int tokens : {16, 40, 150}) {
      MoeMlp some = experts_of(experts, active);
      some.hidden = 128;
      some.expert_bias = true;
      some.activation = {.kind = Activation::swiglu_clamped, .gated = true, .limit = 7.0f};
      expect_experts_agree(device, {.spec = some,
                                    .format = WeightFormat::mxfp4,
                                    .width = 192,
                                    .tokens = tokens,
                                    .has_favourite = experts > 1});
    }
  }
}

// More tiles than a device has SMs.
TEST_P(PromptExperts, OfMxfp4AgreeForFewTokensWhereBlocksTakeSeveralTiles) {
  MoeMlp some = experts_of(16, 2);
  some.hidden = 1536;
  some.activation = {.kind = Activation::swiglu_clamped, .gated = true, .limit = 7.0f};
  for (const int tokens : {64, 200}) {
    expect_experts_agree(device,
                         {.spec = some, .format = WeightFormat::mxfp4, .width = 128, .tokens = tokens});
  }
}

// A GPU routes sixteen tokens at a time, 32 columns and up to 64 experts: tails of each, in every router
// format.
TEST_P(PromptExperts, AreRouted) {
  constexpr WeightFormat routers[] = {WeightFormat::f32, WeightFormat::bf16, WeightFormat::f16};
  int index = 0;
  for (const int experts : {3, 32, 33, 128}) {
    for (const int width : {64, 96, 160, 136, 24, 544}) {
      const int turn = index++;
      SCOPED_TRACE(testing::Message() << "width " << width << ", router " << turn % 3);
      MoeMlp some = experts_of(experts, 2);
      some.router_bias = true;
      some.renormalize = turn % 2 == 0;
      ExpertsCase c = {.spec = some, .width = width, .tokens = 40, .router = routers[turn % 3]};
      c.float_input = turn % 4 < 2;
      expect_experts_agree(device, c);
    }
  }
}

// Logits so close that bf16 products would choose other experts.
TEST_P(PromptExperts, AreChosenAsFloatsDo) {
  for (const WeightFormat router : {WeightFormat::f32, WeightFormat::bf16, WeightFormat::f16}) {
    ExpertsCase c = {
        .spec = experts_of(32, 2), .width = 160, .tokens = 24, .router = router, .float_input = true};
    c.min_margin = 2e-4;
    c.max_margin = 2e-3;
    expect_experts_agree(device, c);
  }
}

// The same for experts that are decoded inside the product.
TEST_P(PromptExperts, OfMxfp4AreRouted) {
  for (const WeightFormat router : {WeightFormat::f32, WeightFormat::bf16}) {
    for (const auto& [experts, active, tokens] : {std::tuple{3, 2, 50}, {32, 8, 130}, {33, 8, 133}}) {
      MoeMlp some = experts_of(experts, active);
      some.hidden = 64;
      some.router_bias = true;
      expect_experts_agree(device, {.spec = some,
                                    .format = WeightFormat::mxfp4,
                                    .width = 192,
                                    .tokens = tokens,
                                    .router = router,
                                    .float_input = true});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, PromptExperts, testing::ValuesIn(backend_names()), backend_test_name);

}  // namespace
}  // namespace inferno
