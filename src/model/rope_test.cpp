#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace inferno {
namespace {

Rope plain(int dims, float theta = 10000.0f) {
  return {.theta = theta, .dims = dims, .scaling = NoScaling{}};
}

TEST(Rope, TurnsEachPairMoreSlowlyThanTheOneBefore) {
  const RopeFrequencies f = rope_frequencies(plain(8), 16);
  ASSERT_EQ(f.inverse.size(), 4u);
  EXPECT_DOUBLE_EQ(f.inverse[0], 1.0);
  EXPECT_NEAR(f.inverse[1], 0.1, 1e-12);
  EXPECT_NEAR(f.inverse[3], 0.001, 1e-12);
}

TEST(Rope, TableHoldsCosinesThenSines) {
  const std::vector<float> table = rope_table(plain(4), 3);
  ASSERT_EQ(table.size(), 12u);
  EXPECT_FLOAT_EQ(table[0], 1.0f);
  EXPECT_FLOAT_EQ(table[2], 0.0f);
  EXPECT_FLOAT_EQ(table[8], std::cos(2.0f));
  EXPECT_FLOAT_EQ(table[11], std::sin(0.02f));
}

// As transformers does: frequency and angle are floats, which shows at far positions.
TEST(Rope, TableRoundsLikeTheReferenceToTheEndOfALongContext) {
  constexpr int context = 131072, dims = 64;
  const std::vector<float> table = rope_table(plain(dims, 150000.0f), context);
  for (int i = 0; i < dims / 2; ++i) {
    const auto frequency = static_cast<float>(1.0 / std::pow(150000.0, 2.0 * i / dims));
    const float angle = 131071.0f * frequency;
    const auto at = std::size_t{context - 1} * dims + static_cast<std::size_t>(i);
    EXPECT_NEAR(table[at], std::cos(static_cast<double>(angle)), 1e-6) << "pair " << i;
    EXPECT_NEAR(table[at + dims / 2], std::sin(static_cast<double>(angle)), 1e-6) << "pair " << i;
  }
}

TEST(Rope, LinearScalingDividesEveryFrequency) {
  Rope rope = plain(8);
  rope.scaling = LinearScaling{4.0f};
  EXPECT_NEAR(rope_frequencies(rope, 16).inverse[1], 0.025, 1e-12);
}

TEST(Rope, Llama3LeavesShortWavesAndStretchesLongOnes) {
  Rope rope = plain(64, 500000.0f);
  rope.scaling = Llama3Scaling{8.0f, 1.0f, 4.0f, 8192};
  const auto scaled = rope_frequencies(rope, 16).inverse,
             before = rope_frequencies(plain(64, 500000.0f), 16).inverse;
  EXPECT_DOUBLE_EQ(scaled.front(), before.front());
  EXPECT_DOUBLE_EQ(scaled.back(), before.back() / 8.0);
  for (std::size_t i = 0; i < scaled.size(); ++i) {
    EXPECT_LE(scaled[i], before[i]);
    EXPECT_GE(scaled[i], before[i] / 8.0);
  }
}

TEST(Rope, YarnBlendsBetweenItsTwoTurns) {
  Rope rope = plain(64, 150000.0f);
  rope.scaling = YarnScaling{32.0f, 32.0f, 1.0f, 4096, false, 1.25f};
  const RopeFrequencies f = rope_frequencies(rope, 16);
  const auto before = rope_frequencies(plain(64, 150000.0f), 16).inverse;
  EXPECT_DOUBLE_EQ(f.attention_factor, 1.25);
  EXPECT_DOUBLE_EQ(f.inverse.front(), before.front());
  EXPECT_DOUBLE_EQ(f.inverse.back(), before.back() / 32.0);
  // The dimension that turns exactly beta_fast times over the original context is where the ramp begins.
  const double low = 64.0 * std::log(4096.0 / (32.0 * 2.0 * std::numbers::pi)) / (2.0 * std::log(150000.0));
  const auto at = static_cast<std::size_t>(std::ceil(low));
  EXPECT_LT(f.inverse[at], before[at]);
  EXPECT_DOUBLE_EQ(f.inverse[at - 1], before[at - 1]);
}

TEST(Rope, LongRopeChoosesItsFactorsByTheContext) {
  Rope rope = plain(4);
  rope.scaling = LongRopeScaling{{1.0f, 2.0f}, {1.0f, 8.0f}, 32, 1.5f, 2.5f};
  EXPECT_NEAR(rope_frequencies(rope, 32).inverse[1], 0.01 / 2.0, 1e-12);
  EXPECT_NEAR(rope_frequencies(rope, 33).inverse[1], 0.01 / 8.0, 1e-12);
  EXPECT_DOUBLE_EQ(rope_frequencies(rope, 32).attention_factor, 1.5);
  EXPECT_DOUBLE_EQ(rope_frequencies(rope, 33).attention_factor, 2.5);
}

}  // namespace
}  // namespace inferno
