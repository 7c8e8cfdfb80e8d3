// mix_experts: routing, routing weights, biases, every format, one and many tokens.
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/backends.h"
#include "ops/experts_scene.h"

namespace inferno {
namespace {

// At least `columns`, in whole blocks.
int whole_blocks(int columns, WeightFormat format) {
  const int block = block_elements(format);
  return (columns + block - 1) / block * block;
}

class MixExperts : public BackendTest {};
class MixExpertsOfFormat : public FormatTest {};

TEST_P(MixExperts, ActivatesFromOneToAllExperts) {
  for (const int active : {1, 2, 3, 5}) {
    for (const bool renormalize : {true, false}) {
      for (const int tokens : {1, 2, 7, 33}) {
        MoeMlp some = experts_of(5, active);
        some.renormalize = renormalize;
        expect_experts_agree(device, {.spec = some, .tokens = tokens});
      }
    }
  }
}

TEST_P(MixExperts, LeavesSomeExpertsWithoutTokens) {
  expect_experts_agree(device, {.spec = experts_of(32, 2), .tokens = 1});
  expect_experts_agree(device, {.spec = experts_of(32, 2), .tokens = 5});
}

TEST_P(MixExperts, AddsTheBiasesOfRouterAndExperts) {
  for (const int tokens : {1, 33}) {
    MoeMlp routed = experts_of(5, 2);
    routed.router_bias = true;
    expect_experts_agree(device, {.spec = routed, .tokens = tokens});
    MoeMlp biased = experts_of(5, 2);
    biased.expert_bias = true;
    expect_experts_agree(device, {.spec = biased, .tokens = tokens});
  }
}

TEST_P(MixExperts, ClampsAsGptOssDoes) {
  MoeMlp clamped = experts_of(6, 4);
  clamped.activation = {.kind = Activation::swiglu_clamped, .gated = true, .limit = 2.0f};
  clamped.router_bias = clamped.expert_bias = true;
  for (const int tokens : {1, 33}) {
    expect_experts_agree(device, {.spec = clamped, .tokens = tokens});
    expect_experts_agree(
        device, {.spec = clamped, .format = WeightFormat::mxfp4, .tokens = tokens, .split_gate_up = true});
  }
}

TEST_P(MixExperts, FollowsTheOrderOfEachExpertsColumns) {
  for (const WeightFormat format : {WeightFormat::q4_0, WeightFormat::int4_128, WeightFormat::int8_64}) {
    MoeMlp some = experts_of(6, 2);
    some.hidden = 128;
    for (const int tokens : {1, 3, 20, 70}) {
      for (const bool split : {false, true}) {
        expect_experts_agree(device, {.spec = some,
                                      .format = format,
                                      .width = 256,
                                      .tokens = tokens,
                                      .split_gate_up = split,
                                      .is_reordered = true});
      }
    }
  }
}

TEST_P(MixExperts, TakesGateAndUpAsTwoParts) {
  for (const int tokens : {1, 7})
    expect_experts_agree(device, {.spec = experts_of(4, 2), .tokens = tokens, .split_gate_up = true});
}

TEST_P(MixExperts, TakesExpertsWithoutAGate) {
  MoeMlp plain = experts_of(4, 2);
  plain.activation = {.kind = Activation::gelu_erf, .gated = false};
  for (const int tokens : {1, 7}) expect_experts_agree(device, {.spec = plain, .tokens = tokens});
}

TEST_P(MixExperts, TakesExpertsWhoseRowsAreNoMultipleOfEight) {
  MoeMlp ragged = experts_of(5, 2);
  ragged.hidden = 20;
  for (const WeightFormat format : {WeightFormat::bf16, WeightFormat::f16, WeightFormat::f32}) {
    for (const int tokens : {1, 7, 33}) {
      expect_experts_agree(device, {.spec = ragged, .format = format, .width = 36, .tokens = tokens});
      expect_experts_agree(
          device, {.spec = ragged, .format = format, .width = 36, .tokens = tokens, .split_gate_up = true});
    }
  }
}

TEST_P(MixExperts, TakesManyTokens) {
  expect_experts_agree(device, {.spec = experts_of(4, 2), .tokens = 100});
}

// Sorted by expert, each expert has more tokens than a tile of 128 and an incomplete last tile.
TEST_P(MixExperts, TakesMoreTokensThanATileForEachExpert) {
  MoeMlp biased = experts_of(4, 2);
  biased.hidden = 72;
  biased.expert_bias = true;
  for (const WeightFormat format : {WeightFormat::bf16, WeightFormat::f16}) {
    expect_experts_agree(device, {.spec = biased, .format = format, .width = 136, .tokens = 333});
  }
}

TEST_P(MixExpertsOfFormat, Agrees) {
  MoeMlp some = experts_of(3, 2);
  some.hidden = whole_blocks(32, format);
  const int width = whole_blocks(96, format);
  for (const int tokens : {1, 5}) {
    const bool split = tokens == 1;
    expect_experts_agree(
        device, {.spec = some, .format = format, .width = width, .tokens = tokens, .split_gate_up = split});
  }
}

// With two tokens or more, the tokens of an expert are multiplied in groups of up to 24; with many tokens, in
// tiles of 128.
constexpr int batches[] = {2, 8, 9, 17, 33, 64, 130};

TEST_P(MixExpertsOfFormat, AgreesForBatchesOfEverySize) {
  MoeMlp some = experts_of(6, 2);
  some.hidden = whole_blocks(96, format);
  some.expert_bias = true;
  const int width = whole_blocks(160, format);
  int turn = 0;
  for (const int tokens : batches) {
    if (!is_turn(turn++)) continue;
    expect_experts_agree(
        device,
        {.spec = some, .format = format, .width = width, .tokens = tokens, .split_gate_up = tokens % 2 == 1});
  }
}

TEST_P(MixExperts, TakesBatchesThatAllChooseTheSameExpert) {
  for (const int tokens : batches) {
    expect_experts_agree(device, {.spec = experts_of(12, 1),
                                  .format = WeightFormat::mxfp4,
                                  .width = 64,
                                  .tokens = tokens,
                                  .has_favourite = true});
    expect_experts_agree(device, {.spec = experts_of(8, 2),
                                  .format = WeightFormat::bf16,
                                  .width = 64,
                                  .tokens = tokens,
                                  .has_favourite = true});
  }
}

TEST_P(MixExperts, TakesBatchesWithMoreExpertsThanTokens) {
  for (const int tokens : {2, 9, 17}) {
    expect_experts_agree(device,
                         {.spec = experts_of(100, 3), .format = WeightFormat::mxfp4, .tokens = tokens});
    expect_experts_agree(device,
                         {.spec = experts_of(100, 3), .format = WeightFormat::q8_0, .tokens = tokens});
  }
}

// Columns that end inside a chunk, rows that end inside a pair of tiles and inside a tile.
TEST_P(MixExperts, TakesBatchesOfOddShapes) {
  for (const auto& [hidden, width] : {std::pair{24, 40}, {72, 136}, {40, 64}, {200, 8}}) {
    for (const int tokens : {2, 9, 33, 64}) {
      SCOPED_TRACE(testing::Message() << "hidden " << hidden << ", width " << width);
      MoeMlp odd = experts_of(5, 2);
      odd.hidden = hidden;
      odd.expert_bias = true;
      expect_experts_agree(device,
                           {.spec = odd, .format = WeightFormat::bf16, .width = width, .tokens = tokens});
      expect_experts_agree(device, {.spec = odd,
                                    .format = WeightFormat::f16,
                                    .width = width,
                                    .tokens = tokens,
                                    .split_gate_up = true});
    }
  }
  MoeMlp ragged = experts_of(5, 2);
  ragged.hidden = 28;  // two parts whose rows are not whole tiles
  for (const int tokens : {2, 33}) {
    expect_experts_agree(
        device,
        {.spec = ragged, .format = WeightFormat::bf16, .width = 64, .tokens = tokens, .split_gate_up = true});
  }
}

// More hidden elements than fit in shared memory with a group of 24 tokens: they are processed in slabs.
TEST_P(MixExperts, TakesBatchesOfManyHiddenElements) {
  for (const WeightFormat format : {WeightFormat::bf16, WeightFormat::mxfp4, WeightFormat::q4_k}) {
    MoeMlp large = experts_of(3, 1);
    large.hidden = 5120;
    large.expert_bias = true;
    const int width = format == WeightFormat::q4_k ? 256 : 64;
    for (const int tokens : {4, 40}) {
      expect_experts_agree(device, {.spec = large, .format = format, .width = width, .tokens = tokens});
    }
  }
}

TEST_P(MixExperts, TakesBatchesAtHalfTheWidthOfGptOss) {
  MoeMlp shape = experts_of(3, 2);
  shape.hidden = 1440;
  shape.activation = {.kind = Activation::swiglu_clamped, .gated = true, .limit = 7.0f};
  shape.router_bias = shape.expert_bias = true;
  expect_experts_agree(device, {.spec = shape, .format = WeightFormat::mxfp4, .width = 1440, .tokens = 24});
}

INSTANTIATE_TEST_SUITE_P(Ops, MixExperts, testing::ValuesIn(backend_names()), backend_test_name);
INSTANTIATE_TEST_SUITE_P(Ops, MixExpertsOfFormat,
                         testing::Combine(testing::ValuesIn(backend_names()),
                                          testing::ValuesIn(format_names())),
                         backend_and_format_test_name);

}  // namespace
}  // namespace inferno
