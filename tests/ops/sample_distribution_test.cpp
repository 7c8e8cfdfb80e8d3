// Tens of thousands of draws: a device draws each token as often as the settings define and as the CPU does.
//
// Chi-square tests on cells of at least ten expected draws. For a chi-square variable X of d degrees of
// freedom P(X > d + 2 sqrt(d t) + 2 t) <= exp(-t) (Laurent and Massart), so with t = ln(1e7) a correct
// sampler fails one comparison in ten million; the seeds are fixed, so a sampler that passed once passes
// again.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/backends.h"
#include "ops/sample_reference.h"
#include "ops/sample_scene.h"

namespace inferno {
namespace {

using reference::SampleCase;

constexpr int vocab = 1000, draws = 10000, at_once = 1000;

SampleCase plain_case() {
  Random random(77);
  SampleCase c;
  for (int i = 0; i < vocab; ++i) c.logits.push_back(static_cast<float>(2.0 * random.normal()));
  c.row.temperature = 1.0f;
  return c;
}

SampleCase with(const std::function<void(SampleCase&)>& change) {
  SampleCase c = plain_case();
  change(c);
  return c;
}

void penalize(SampleCase& c) {
  for (int token = 0; token < vocab; token += 3) c.history.push_back({token, static_cast<float>(token % 4)});
  c.row.repetition = 1.3f;
  c.row.presence = 0.5f;
  c.row.frequency = 0.3f;
}

void favour(SampleCase& c) {
  for (int token = 1; token < vocab; token += 7) c.bias.push_back({token, token % 2 == 0 ? 2.0f : -1.5f});
  c.bias.push_back({vocab - 1, -std::numeric_limits<float>::infinity()});
}

struct Setting {
  std::string name;
  SampleCase sampling;
};

std::vector<Setting> settings() {
  return {{"plain", plain_case()},
          {"cold", with([](SampleCase& c) { c.row.temperature = 0.6f; })},
          {"hot", with([](SampleCase& c) { c.row.temperature = 1.7f; })},
          {"top_k", with([](SampleCase& c) { c.row.top_k = 40; })},
          {"top_p", with([](SampleCase& c) { c.row.top_p = 0.8f; })},
          {"min_p", with([](SampleCase& c) { c.row.min_p = 0.05f; })},
          {"typical_p", with([](SampleCase& c) { c.row.typical_p = 0.6f; })},
          {"penalties", with(penalize)},
          {"bias", with(favour)},
          {"allowed", with([](SampleCase& c) {
             for (int token = 5; token < vocab; token += 11) c.allowed.push_back({token, 0.0f});
           })},
          {"everything", with([](SampleCase& c) {
             penalize(c);
             favour(c);
             c.row.temperature = 0.9f;
             c.row.top_k = 200;
             c.row.top_p = 0.95f;
             c.row.min_p = 0.01f;
             c.row.alternatives = 5;
           })}};
}

// Half of the draws differ in the seed, half in the position.
SampleCase draw_number(const SampleCase& c, int index, std::uint64_t seed) {
  SampleCase out = c;
  const std::uint64_t own = index % 2 == 0 ? seed + static_cast<std::uint64_t>(index) : seed;
  out.row.seed_low = static_cast<std::uint32_t>(own);
  out.row.seed_high = static_cast<std::uint32_t>(own >> 32);
  out.row.position = index % 2 == 0 ? 17 : index;
  return out;
}

std::vector<int> draw(const std::string& backend, const SampleCase& c, std::uint64_t seed) {
  std::vector<int> tokens;
  for (int first = 0; first < draws; first += at_once) {
    Device device(backend == "cpu" ? make_cpu_backend(0)
                                   : make_backend(backend));  // frees its memory at the end of the scope
    std::vector<SampleCase> batch;
    for (int i = 0; i < at_once; ++i) batch.push_back(draw_number(c, first + i, seed));
    for (const SampleResult& result : run_samples(device, batch)) tokens.push_back(result.head.token);
  }
  return tokens;
}

std::vector<double> counted(const std::vector<int>& tokens) {
  std::vector<double> counts(vocab);
  for (const int token : tokens) counts.at(static_cast<std::size_t>(token)) += 1.0;
  return counts;
}

struct ChiSquare {
  double value = 0.0;
  int cells = 0;
  double limit() const {
    const double freedom = cells - 1, t = std::log(1e7);
    return freedom + 2.0 * std::sqrt(freedom * t) + 2.0 * t;
  }
};

constexpr double min_expected = 10.0;  // draws of a cell

ChiSquare against(const std::vector<double>& counts, const std::vector<double>& probabilities) {
  ChiSquare out;
  double rare = 0.0, rare_expected = 0.0;
  const auto add = [&out](double found, double expected) {
    out.value += (found - expected) * (found - expected) / expected;
    ++out.cells;
  };
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = probabilities[i] * draws;
    if (expected >= min_expected) {
      add(counts[i], expected);
    } else {
      rare += counts[i];
      rare_expected += expected;
    }
  }
  if (rare_expected >= min_expected) add(rare, rare_expected);
  return out;
}

// Whether two samples of equal size come from one distribution.
ChiSquare between(const std::vector<double>& a, const std::vector<double>& b) {
  ChiSquare out;
  double rare_a = 0.0, rare_b = 0.0;
  const auto add = [&out](double x, double y) {
    out.value += (x - y) * (x - y) / (x + y);
    ++out.cells;
  };
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] + b[i] >= 2.0 * min_expected) {
      add(a[i], b[i]);
    } else {
      rare_a += a[i];
      rare_b += b[i];
    }
  }
  if (rare_a + rare_b >= 2.0 * min_expected) add(rare_a, rare_b);
  return out;
}

class SampleDistribution : public BackendTest {};

TEST_P(SampleDistribution, IsThatOfTheSettingsAndOfTheCpu) {
  for (const Setting& setting : settings()) {
    SCOPED_TRACE(setting.name);
    const std::vector<double> probabilities = reference::distribution(setting.sampling);
    const std::vector<int> tokens = draw(GetParam(), setting.sampling, 1),
                           same = draw("cpu", setting.sampling, 1);
    const std::vector<double> counts = counted(tokens);
    for (std::size_t token = 0; token < counts.size(); ++token) {
      EXPECT_TRUE(counts[token] == 0.0 || probabilities[token] > 0.0) << "token " << token << " is ruled out";
    }
    const ChiSquare exact = against(counts, probabilities);
    const ChiSquare cpu = between(counts, counted(draw("cpu", setting.sampling, 1'000'000'007)));
    EXPECT_LE(exact.value, exact.limit()) << exact.cells << " cells";
    EXPECT_LE(cpu.value, cpu.limit()) << cpu.cells << " cells";
    int other = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) other += tokens[i] != same[i] ? 1 : 0;
    EXPECT_LE(other, draws / 1000) << "the same seed draws another token than on the CPU";
    std::cout << setting.name << ": chi-square " << exact.value << " of at most " << exact.limit()
              << " against the settings, " << cpu.value << " of at most " << cpu.limit()
              << " against the CPU; with its seeds " << other << " of " << draws << " tokens differ\n";
  }
}

TEST_P(SampleDistribution, IsToldFromASlightlyWarmerOne) {
  const SampleCase warmer = with([](SampleCase& c) { c.row.temperature = 1.1f; });
  const ChiSquare found =
      against(counted(draw(GetParam(), warmer, 3)), reference::distribution(plain_case()));
  EXPECT_GT(found.value, found.limit());
}

TEST_P(SampleDistribution, IsDrawnFromByTheSeedAloneWhateverTheBatch) {
  const SampleCase c = settings().back().sampling;
  std::vector<SampleCase> batch;
  for (int i = 0; i < 300; ++i) batch.push_back(draw_number(c, i, 5));
  const std::vector<SampleResult> first = run_samples(device, batch);
  std::vector<SampleCase> backwards(batch.rbegin(), batch.rend());
  const std::vector<SampleResult> second = run_samples(device, backwards);
  int changed = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const SampleResult& other = second[batch.size() - 1 - i];
    EXPECT_EQ(first[i].head.token, other.head.token);
    EXPECT_EQ(std::bit_cast<int>(first[i].head.logprob), std::bit_cast<int>(other.head.logprob));
    changed += first[i].head.token != first[0].head.token ? 1 : 0;
  }
  EXPECT_GT(changed, 100);
}

// The size of the vocabulary of gpt-oss.
TEST_P(SampleDistribution, HoldsOnALargeVocabulary) {
  std::vector<SampleCase> batch;
  for (std::uint64_t i = 0; i < 6; ++i) {
    SampleCase c = random_sample_case(201088, 500 + i);
    c.row.alternatives = 5;
    batch.push_back(std::move(c));
  }
  const std::vector<SampleResult> results = run_samples(device, batch);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const std::vector<int> possible = reference::possible_tokens(batch[i], {.sums = 2e-5});
    EXPECT_EQ(std::count(possible.begin(), possible.end(), results[i].head.token), 1)
        << "case " << i << ": " << results[i].head.token << " instead of " << possible[0];
    const std::vector<double> logprobs = reference::logprobs(batch[i].logits);
    ASSERT_EQ(results[i].alternatives.size(), 5u);
    EXPECT_NEAR(results[i].head.logprob, logprobs[static_cast<std::size_t>(results[i].head.token)], 1e-4);
    for (const ListEntry& entry : results[i].alternatives) {
      EXPECT_NEAR(entry.value, logprobs[static_cast<std::size_t>(entry.token)], 1e-4);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, SampleDistribution, testing::Values(backend_names().front()),
                         backend_test_name);

}  // namespace
}  // namespace inferno
