// The check that answers of a GPU are close enough must itself be able to tell chance from a wrong sampler.
#include "engine/answer_divergence.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/sample_reference.h"

namespace inferno::testing {
namespace {

std::vector<float> random_logits(Random& random) {
  std::vector<float> out;
  for (int i = 0; i < scene_vocab; ++i) out.push_back(static_cast<float>(random.normal()));
  return out;
}

std::vector<float> rounded_otherwise(std::vector<float> logits, Random& random) {
  for (float& x : logits) x += static_cast<float>(0.01 * random.normal());
  return logits;
}

reference::SampleCase case_of(std::vector<float> logits, std::uint32_t seed, int position) {
  reference::SampleCase c;
  c.logits = std::move(logits);
  c.row.temperature = 1.0f;
  c.row.seed_low = seed;
  c.row.position = position;
  return c;
}

// As many steps as a test of forks has, drawn from logits that agree as well as a GPU's. The second sampler
// is given its case by `wrong`.
template <class Wrong>
DivergenceCount compare(const Wrong& wrong) {
  Random random(7);
  DivergenceCount out;
  for (int step = 0; step < 721; ++step) {
    const reference::SampleCase one = case_of(random_logits(random), 5, step);
    const reference::SampleCase other = case_of(rounded_otherwise(one.logits, random), 5, step);
    out.add(divergence_chance(reference::distribution(one), reference::distribution(other)),
            reference::possible_tokens(one)[0] != reference::possible_tokens(wrong(other))[0]);
  }
  return out;
}

TEST(NearAnswers, PartWhereBordersBetweenTokensHaveMoved) {
  EXPECT_NEAR(divergence_chance({0.5, 0.5}, {0.4, 0.6}), 0.1, 1e-12);
  // A twentieth goes from the last token to the first: three borders move by it.
  EXPECT_NEAR(divergence_chance({0.25, 0.25, 0.25, 0.25}, {0.30, 0.25, 0.25, 0.20}), 0.15, 1e-12);
  EXPECT_NEAR(divergence_chance({0.0, 1.0, 0.0}, {0.0, 0.0, 1.0}), 1.0, 1e-12);
  EXPECT_NEAR(divergence_chance({0.2, 0.3, 0.5}, {0.2, 0.3, 0.5}), 0.0, 1e-12);
}

TEST(NearAnswers, PartAsOftenAsChanceMakesThem) {
  const DivergenceCount found = compare([](const auto& c) { return c; });
  EXPECT_GT(found.expected(), 10.0);  // so this shows something
  EXPECT_NEAR(found.count(), found.expected(), 3.0 * std::sqrt(found.expected()));
  EXPECT_LE(found.count(), found.max_count());
}

TEST(NearAnswers, PartTooOftenWhereTheSamplerIsWrong) {
  const auto other_seed = [](reference::SampleCase c) {
    c.row.seed_low += 1;
    return c;
  };
  const auto other_position = [](reference::SampleCase c) {
    c.row.position += 1;
    return c;
  };
  const auto warmer = [](reference::SampleCase c) {
    c.row.temperature = 1.1f;
    return c;
  };
  const auto one_token_less = [](reference::SampleCase c) {
    c.logits[0] = -INFINITY;
    return c;
  };
  for (const DivergenceCount& found :
       {compare(other_seed), compare(other_position), compare(warmer), compare(one_token_less)}) {
    EXPECT_GT(found.count(), found.max_count());
  }
}

}  // namespace
}  // namespace inferno::testing
