// Masks: a row with one never draws a token outside it, whatever the settings, and a row without one is as it
// was.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ops/backends.h"
#include "ops/sample_reference.h"
#include "ops/sample_scene.h"

namespace inferno {
namespace {

using reference::SampleCase;

class SampleMask : public BackendTest {
 protected:
  std::vector<SampleResult> run(const std::vector<SampleCase>& cases) { return run_samples(device, cases); }
  SampleResult run_one(const SampleCase& c) { return run({c})[0]; }
};

std::vector<std::uint32_t> mask_of(int vocab, const std::vector<int>& tokens) {
  std::vector<std::uint32_t> mask(static_cast<std::size_t>(mask_words(vocab)));
  for (const int token : tokens) mask[static_cast<std::size_t>(token) / 32] |= 1u << (token % 32);
  return mask;
}

SampleCase masked_case(int vocab, std::uint64_t seed) {
  SampleCase c = random_sample_case(vocab, seed);
  Random random(seed + 1'000'000);
  c.mask = random_mask(vocab, random);
  return c;
}

TEST_P(SampleMask, AgreesWithDoublePrecision) {
  int decided = 0, cases = 0;
  for (const int vocab : {1, 2, 17, 31, 32, 33, 63, 64, 65, 300, 2000}) {
    std::vector<SampleCase> batch;
    for (std::uint64_t i = 0; i < 40; ++i) {
      batch.push_back(masked_case(vocab, static_cast<std::uint64_t>(vocab) * 1000 + i));
    }
    const std::vector<SampleResult> results = run(batch);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "vocabulary " << vocab << ", case " << i);
      const std::vector<int> possible = reference::possible_tokens(batch[i]);
      const int token = results[i].head.token;
      EXPECT_EQ(std::ranges::count(possible, token), 1) << token << " instead of " << possible[0];
      EXPECT_TRUE(token < 0 || batch[i].permits(token));
      EXPECT_EQ(results[i].head.outcome, token < 0 ? SampleOutcome::nothing_left : SampleOutcome::token);
      decided += possible.size() == 1 ? 1 : 0;
      ++cases;
    }
  }
  EXPECT_GT(decided, cases * 98 / 100);  // otherwise the tolerance hides too much
}

// One filter at a time, with the likeliest tokens outside the mask.
TEST_P(SampleMask, HoldsUnderEveryFilter) {
  constexpr int vocab = 1000;
  const std::vector<std::function<void(SampleCase&)>> filters = {
      [](SampleCase& c) { c.row.temperature = 0.0f; },
      [](SampleCase&) {},
      [](SampleCase& c) { c.row.top_k = 3; },
      [](SampleCase& c) { c.row.top_k = 900; },
      [](SampleCase& c) { c.row.top_p = 0.4f; },
      [](SampleCase& c) { c.row.min_p = 0.1f; },
      [](SampleCase& c) { c.row.typical_p = 0.5f; },
      [](SampleCase& c) {
        c.history = {{1, 2.0f}, {500, 1.0f}};
        c.row.repetition = 1.5f;
      },
      [](SampleCase& c) { c.bias = {{0, 100.0f}, {501, 3.0f}}; },
      [](SampleCase& c) { c.allowed = {{0, 0.0f}, {2, 0.0f}, {501, 0.0f}, {777, 0.0f}}; },
  };
  for (std::size_t filter = 0; filter < filters.size(); ++filter) {
    SampleCase c;
    Random random(filter);
    for (int token = 0; token < vocab; ++token) {
      // Hundreds above the rest: any sum that includes a forbidden token would be lost or infinite.
      c.logits.push_back(static_cast<float>(random.normal()) + (token % 2 == 0 ? 300.0f : 0.0f));
    }
    std::vector<int> odd;
    for (int token = 1; token < vocab; token += 2) odd.push_back(token);
    c.mask = mask_of(vocab, odd);
    c.row.temperature = 1.0f;
    filters[filter](c);
    std::vector<SampleCase> batch;
    for (int i = 0; i < 50; ++i) {
      batch.push_back(c);
      batch.back().row.position = i;
    }
    for (const SampleResult& result : run(batch)) {
      EXPECT_EQ(result.head.outcome, SampleOutcome::token) << "filter " << filter;
      EXPECT_EQ(result.head.token % 2, 1) << "filter " << filter;
    }
  }
}

TEST_P(SampleMask, LeavesLogProbabilitiesAsTheModelGaveThem) {
  for (const int vocab : {17, 300, 2000}) {
    for (std::uint64_t i = 0; i < 10; ++i) {
      SampleCase c = masked_case(vocab, static_cast<std::uint64_t>(vocab) * 77 + i);
      c.row.alternatives = static_cast<std::int32_t>(i);
      expect_own_logprobs(c, run_one(c));
    }
  }
}

// Free rows are drawn exactly as in a batch without masks, and masked ones as they are alone.
TEST_P(SampleMask, ConcernsOnlyItsOwnRow) {
  std::vector<SampleCase> mixed, free;
  for (std::uint64_t i = 0; i < 24; ++i) {
    mixed.push_back(i % 3 == 0 ? masked_case(500, 900 + i) : random_sample_case(500, 900 + i));
    free.push_back(random_sample_case(500, 900 + i));
  }
  const std::vector<SampleResult> together = run(mixed), without = run(free);
  for (std::size_t i = 0; i < mixed.size(); ++i) {
    const SampleResult expected = mixed[i].mask.empty() ? without[i] : run_one(mixed[i]);
    EXPECT_EQ(together[i].head.token, expected.head.token) << i;
    EXPECT_EQ(std::bit_cast<int>(together[i].head.logprob), std::bit_cast<int>(expected.head.logprob)) << i;
  }
}

TEST_P(SampleMask, OfAllTokensChangesNothing) {
  std::vector<SampleCase> free, masked;
  for (std::uint64_t i = 0; i < 40; ++i) {
    free.push_back(random_sample_case(333, 40 + i));
    masked.push_back(free.back());
    masked.back().mask.assign(static_cast<std::size_t>(mask_words(333)), ~0u);
  }
  const std::vector<SampleResult> expected = run(free), found = run(masked);
  for (std::size_t i = 0; i < free.size(); ++i) {
    EXPECT_EQ(found[i].head.token, expected[i].head.token) << i;
    EXPECT_EQ(std::bit_cast<int>(found[i].head.logprob), std::bit_cast<int>(expected[i].head.logprob)) << i;
  }
}

TEST_P(SampleMask, TakesTheLowestOfEqualTokensWhenGreedy) {
  SampleCase c;
  c.logits.assign(1000, 0.0f);
  c.mask = mask_of(1000, {40, 640, 999});
  EXPECT_EQ(run_one(c).head.token, 40);
  c.logits[999] = 1.0f;
  EXPECT_EQ(run_one(c).head.token, 999);
  c.logits.assign(1000, -3e38f);  // no smaller value exists as padding
  EXPECT_EQ(run_one(c).head.token, 40);
}

TEST_P(SampleMask, SaysWhenALogitIsNotFiniteOutsideTheMaskToo) {
  for (const std::size_t at : {std::size_t{0}, std::size_t{7}, std::size_t{99}}) {
    SampleCase good = random_sample_case(100, 5);
    good.bias.clear();
    good.allowed.clear();
    good.mask = mask_of(100, {7, 8});
    SampleCase bad = good;
    bad.logits[at] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<SampleResult> results = run({good, bad, good});
    EXPECT_EQ(results[1].head.outcome, SampleOutcome::not_finite);
    EXPECT_EQ(results[0].head.outcome, SampleOutcome::token);
    EXPECT_EQ(results[2].head.token, results[0].head.token);
  }
}

TEST_P(SampleMask, SaysWhenNothingIsLeft) {
  constexpr int vocab = 70;
  const float banned = -std::numeric_limits<float>::infinity();
  for (const float temperature : {0.0f, 1.0f}) {
    SampleCase c;
    c.logits.assign(vocab, 1.0f);
    c.row.temperature = temperature;
    c.mask = mask_of(vocab, {});
    EXPECT_EQ(run_one(c).head.outcome, SampleOutcome::nothing_left);
    c.mask.back() = 0xFFFFFFC0u;  // only bits past the vocabulary
    EXPECT_EQ(run_one(c).head.outcome, SampleOutcome::nothing_left);
    c.mask = mask_of(vocab, {3, 69});
    c.bias = {{3, banned}, {69, banned}};
    EXPECT_EQ(run_one(c).head.outcome, SampleOutcome::nothing_left);
    c.bias.clear();
    c.allowed = {{4, 0.0f}, {68, 0.0f}};
    EXPECT_EQ(run_one(c).head.outcome, SampleOutcome::nothing_left);
    c.allowed.push_back({69, 0.0f});
    EXPECT_EQ(run_one(c).head.token, 69);
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, SampleMask, testing::ValuesIn(backend_names()), backend_test_name);

}  // namespace
}  // namespace inferno
