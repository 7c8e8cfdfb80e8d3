// sample: every setting against simple code in double precision, and invariants that hold for all settings.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/counter_random.h"
#include "ops/backends.h"
#include "ops/sample_reference.h"
#include "ops/sample_scene.h"

namespace inferno {
namespace {

using reference::SampleCase;

class Sample : public BackendTest {
 protected:
  std::vector<SampleResult> run(const std::vector<SampleCase>& cases) { return run_samples(device, cases); }
  SampleResult run_one(const SampleCase& c) { return run({c})[0]; }
};

TEST_P(Sample, AgreesWithDoublePrecision) {
  int decided = 0, cases = 0;
  for (const int vocab : {1, 2, 17, 63, 64, 65, 300, 2000}) {
    std::vector<SampleCase> batch;
    for (std::uint64_t i = 0; i < 40; ++i)
      batch.push_back(random_sample_case(vocab, static_cast<std::uint64_t>(vocab) * 1000 + i));
    const std::vector<SampleResult> results = run(batch);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "vocabulary " << vocab << ", case " << i);
      const std::vector<int> possible = reference::possible_tokens(batch[i]);
      EXPECT_TRUE(std::ranges::count(possible, results[i].head.token) == 1)
          << results[i].head.token << " instead of " << possible[0];
      decided += possible.size() == 1 ? 1 : 0;
      ++cases;
    }
  }
  EXPECT_GT(decided, cases * 98 / 100);  // otherwise the tolerance hides too much
}

// Three rows that cover every path, for tools that check every memory access, where hundreds of rows would
// take minutes.
TEST_P(Sample, AgreesAtThreeSizes) {
  for (const int vocab : {17, 300, 2000}) {
    SampleCase c = random_sample_case(vocab, 3);
    c.row.temperature = 0.9f;
    c.row.top_k = vocab / 2;
    c.row.top_p = 0.9f;
    c.row.min_p = 0.01f;
    c.row.typical_p = 0.9f;
    c.row.repetition = 1.1f;
    c.row.alternatives = 2;
    c.allowed.clear();
    const std::vector<int> possible = reference::possible_tokens(c);
    EXPECT_EQ(std::ranges::count(possible, run_one(c).head.token), 1) << "vocabulary " << vocab;
  }
}

TEST_P(Sample, ReportsTheModelsOwnLogProbabilities) {
  for (const int vocab : {1, 17, 300, 2000}) {
    for (std::uint64_t i = 0; i < 10; ++i) {
      SampleCase c = random_sample_case(vocab, static_cast<std::uint64_t>(vocab) * 77 + i);
      c.row.alternatives = static_cast<std::int32_t>(i);
      expect_own_logprobs(c, run_one(c));
    }
  }
}

TEST_P(Sample, DrawsEachTokenAsOftenAsItsProbability) {
  constexpr int draws = 20000;
  SampleCase c;
  c.logits = {1.0f, 0.0f, 2.0f, -1.0f};
  c.row.temperature = 1.0f;
  std::vector<SampleCase> batch(100, c);
  std::vector<int> counts(4);
  for (int i = 0; i < draws; i += 100) {
    for (int k = 0; k < 100; ++k) batch[static_cast<std::size_t>(k)].row.position = i + k;
    for (const SampleResult& result : run(batch)) ++counts[static_cast<std::size_t>(result.head.token)];
  }
  const std::vector<double> expected = reference::logprobs(c.logits);
  for (std::size_t t = 0; t < 4; ++t) {
    const double p = std::exp(expected[t]);
    EXPECT_NEAR(counts[t] / static_cast<double>(draws), p, 4.0 * std::sqrt(p * (1.0 - p) / draws));
  }
}

TEST_P(Sample, TakesTheLowestOfEqualTokensWhenGreedy) {
  SampleCase c;
  c.logits.assign(1000, -3.0f);
  c.logits[700] = c.logits[613] = c.logits[999] = 5.5f;
  EXPECT_EQ(run_one(c).head.token, 613);
  c.logits.assign(1000, 0.0f);
  EXPECT_EQ(run_one(c).head.token, 0);
  c.logits.assign(1000, -3e38f);  // no smaller value exists as padding
  EXPECT_EQ(run_one(c).head.token, 0);
  c.logits[998] = -2.9e38f;
  EXPECT_EQ(run_one(c).head.token, 998);
}

TEST_P(Sample, SaysWhenALogitIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float wrong : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
    for (const std::size_t at : {std::size_t{0}, std::size_t{15}, std::size_t{16}, std::size_t{99}}) {
      SampleCase good = random_sample_case(100, 5);
      good.row.temperature = 0.0f;
      SampleCase bad = good;
      bad.logits[at] = wrong;
      const std::vector<SampleResult> results = run({good, bad, good});
      EXPECT_EQ(results[1].head.outcome, SampleOutcome::not_finite);
      EXPECT_EQ(results[1].head.token, -1);
      EXPECT_EQ(results[0].head.outcome, SampleOutcome::token);
      EXPECT_EQ(results[2].head.token, results[0].head.token);
    }
  }
}

TEST_P(Sample, SaysWhenNothingIsLeft) {
  SampleCase c = random_sample_case(30, 6);
  c.bias.clear();
  c.allowed = {{3, 0.0f}, {7, 0.0f}};
  c.bias = {{3, -std::numeric_limits<float>::infinity()}, {7, -std::numeric_limits<float>::infinity()}};
  EXPECT_EQ(run_one(c).head.outcome, SampleOutcome::nothing_left);
}

TEST_P(Sample, DoesNotDependOnTheOtherRows) {
  std::vector<SampleCase> batch;
  for (std::uint64_t i = 0; i < 16; ++i) batch.push_back(random_sample_case(500, 900 + i));
  const std::vector<SampleResult> together = run(batch);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const SampleResult alone = run_one(batch[i]);
    EXPECT_EQ(alone.head.token, together[i].head.token);
    EXPECT_EQ(std::bit_cast<int>(alone.head.logprob), std::bit_cast<int>(together[i].head.logprob));
  }
}

// Known answers of Philox 4x32-10, from the Random123 library's own tests.
TEST(CounterRandom, GivesThePublishedNumbers) {
  const RandomWords zero = philox(0, 0);
  EXPECT_EQ(zero.words[0], 0x6627e8d5u);
  EXPECT_EQ(zero.words[1], 0xe169c58du);
  EXPECT_EQ(zero.words[2], 0xbc57ac4cu);
  EXPECT_EQ(zero.words[3], 0x9b00dbd8u);
}

INSTANTIATE_TEST_SUITE_P(Ops, Sample, testing::ValuesIn(backend_names()), backend_test_name);

}  // namespace
}  // namespace inferno
