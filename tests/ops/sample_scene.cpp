#include "ops/sample_scene.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace inferno {
namespace {

using reference::SampleCase;

constexpr int max_alternatives = 20;

template <class Record>
Matrix as_matrix(Device& device, const std::vector<Record>& records) {
  constexpr int cols = sizeof(Record) / 4;
  std::vector<std::int32_t> words(records.size() * cols);
  std::memcpy(words.data(), records.data(), words.size() * 4);
  return device.upload(words, cols);
}

std::vector<SampleResult> read(Device& device, Matrix out) {
  const std::vector<std::byte> bytes = device.bytes(out);
  const std::size_t stride = static_cast<std::size_t>(sample_columns(max_alternatives)) * 4;
  std::vector<SampleResult> results(static_cast<std::size_t>(out.rows));
  for (std::size_t r = 0; r < results.size(); ++r) {
    std::memcpy(&results[r].head, bytes.data() + r * stride, sizeof(SampleHead));
    results[r].alternatives.resize(static_cast<std::size_t>(results[r].head.alternatives));
    std::memcpy(results[r].alternatives.data(), bytes.data() + r * stride + sizeof(SampleHead),
                results[r].alternatives.size() * sizeof(ListEntry));
  }
  return results;
}

// Tokens are also written for the next step, with a valid id even if no token was drawn.
void expect_again(Device& device, Matrix tokens, const std::vector<SampleResult>& results) {
  std::vector<std::int32_t> found(results.size());
  const std::vector<std::byte> bytes = device.bytes(tokens);
  std::memcpy(found.data(), bytes.data(), bytes.size());
  for (std::size_t r = 0; r < results.size(); ++r) EXPECT_EQ(found[r], std::max(results[r].head.token, 0));
}

// The masks of all cases that have one, in reverse order, so that a row's mask is not the one of its own
// index.
std::vector<std::int32_t> joined_masks(const std::vector<SampleCase>& cases, std::vector<SamplingRow>& rows) {
  std::vector<std::int32_t> words;
  std::int32_t masks = 0;
  for (std::size_t i = cases.size(); i-- > 0;) {
    if (cases[i].mask.empty()) continue;
    words.insert(words.end(), cases[i].mask.begin(), cases[i].mask.end());
    rows[i].mask = masks++;
  }
  return words;
}

}  // namespace

std::vector<SampleResult> run_samples(Device& device, const std::vector<SampleCase>& cases) {
  HostMatrix logits(static_cast<int>(cases.size()), static_cast<int>(cases[0].logits.size()));
  std::vector<SamplingRow> rows;
  std::vector<ListEntry> lists;
  const auto append = [&](const std::vector<ListEntry>& list) {
    const auto begin = static_cast<std::int32_t>(lists.size());
    lists.insert(lists.end(), list.begin(), list.end());
    return ListRange{begin, static_cast<std::int32_t>(lists.size())};
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::copy(cases[i].logits.begin(), cases[i].logits.end(), logits.row(static_cast<int>(i)).begin());
    rows.push_back(cases[i].row);
    rows.back().history = append(cases[i].history);
    rows.back().bias = append(cases[i].bias);
    rows.back().allowed = append(cases[i].allowed);
  }
  const auto vocab = static_cast<int>(cases[0].logits.size());
  const std::vector<std::int32_t> masks = joined_masks(cases, rows);
  lists.push_back({});  // never an empty upload
  const Matrix out = device.poisoned(logits.rows, sample_columns(max_alternatives), DType::i32);
  const Matrix tokens = device.poisoned(logits.rows, 1, DType::i32);
  device.backend().sample(out, device.upload(logits, DType::f32),
                          {.rows = as_matrix(device, rows),
                           .lists = as_matrix(device, lists),
                           .tokens = tokens,
                           .masks = masks.empty() ? Matrix{} : device.upload(masks, mask_words(vocab))});
  const std::vector<SampleResult> results = read(device, out);
  expect_again(device, tokens, results);
  return results;
}

std::vector<std::uint32_t> random_mask(int vocab, Random& random) {
  std::vector<std::uint32_t> mask;
  const int kind = random.below(4);
  for (int word = 0; word < mask_words(vocab); ++word) {
    const auto bits = static_cast<std::uint32_t>(random.word());
    const bool is_rare = random.below(8) != 0;
    mask.push_back(kind == 0   ? bits
                   : kind == 1 ? (is_rare ? 0u : 1u << (bits % 32))
                   : kind == 2 ? ~bits | bits << 3
                               : ~0u);
  }
  return mask;
}

SampleCase random_sample_case(int vocab, std::uint64_t seed) {
  Random random(seed);
  SampleCase c;
  for (int i = 0; i < vocab; ++i) c.logits.push_back(static_cast<float>(4.0 * random.normal()));
  const auto chance = [&](int of) { return random.below(of) == 0; };
  SamplingRow& row = c.row;
  row.temperature = chance(5) ? 0.0f : static_cast<float>(0.2 + 1.8 * random.uniform());
  if (chance(2)) row.top_k = 1 + random.below(vocab < 50 ? vocab : 50);
  if (chance(2)) row.top_p = static_cast<float>(0.05 + 0.95 * random.uniform());
  if (chance(3)) row.min_p = static_cast<float>(0.5 * random.uniform());
  if (chance(3)) row.typical_p = static_cast<float>(0.1 + 0.9 * random.uniform());
  if (chance(3)) row.repetition = static_cast<float>(0.7 + random.uniform());
  if (chance(3)) row.presence = static_cast<float>(2.0 * random.uniform() - 1.0);
  if (chance(3)) row.frequency = static_cast<float>(2.0 * random.uniform() - 1.0);
  row.seed_low = static_cast<std::uint32_t>(random.word());
  row.seed_high = static_cast<std::uint32_t>(random.word());
  row.position = random.below(1 << 20);
  row.alternatives = random.below(8) - 1;
  for (int token = 0; token < vocab; ++token) {
    if (chance(4)) c.history.push_back({token, static_cast<float>(random.below(4))});
    if (chance(16)) c.bias.push_back({token, static_cast<float>(4.0 * random.normal())});
    if (chance(16) && vocab > 20) c.bias.push_back({token, -std::numeric_limits<float>::infinity()});
    if (c.bias.size() > 1 && c.bias.back().token == c.bias[c.bias.size() - 2].token) c.bias.pop_back();
  }
  if (chance(4)) {
    for (int token = 0; token < vocab; ++token) {
      if (chance(3)) c.allowed.push_back({token, 0.0f});
    }
  }
  return c;
}

void expect_own_logprobs(const reference::SampleCase& sample, const SampleResult& result) {
  const std::vector<double> expected = reference::logprobs(sample.logits);
  if (result.head.token >= 0) {
    EXPECT_NEAR(result.head.logprob, expected[static_cast<std::size_t>(result.head.token)], 1e-4);
  }
  ASSERT_EQ(result.alternatives.size(),
            std::min(static_cast<std::size_t>(sample.row.alternatives), sample.logits.size()));
  const std::vector<int> order = reference::by_value(expected);
  for (std::size_t k = 0; k < result.alternatives.size(); ++k) {
    EXPECT_EQ(result.alternatives[k].token, order[k]);
    EXPECT_NEAR(result.alternatives[k].value, expected[static_cast<std::size_t>(order[k])], 1e-4);
  }
}

}  // namespace inferno
