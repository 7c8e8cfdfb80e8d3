#include "golden/agreement.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/load.h"
#include "model/runner.h"
#include "support/golden.h"

namespace inferno::testing {
namespace {

TokenId best(const std::vector<float>& logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

std::vector<TokenId> generate(Runner& runner, const std::vector<TokenId>& prompt, std::size_t count) {
  std::vector<TokenId> out;
  std::vector<float> logits = runner.feed(prompt, 1);
  while (out.size() < count) {
    out.push_back(best(logits));
    if (out.size() < count) logits = runner.feed(std::span(&out.back(), 1), 1);
  }
  return out;
}

// Loaded for exactly as many positions as the case needs: LongRoPE chooses its factors by that.
void expect_case(const GoldenModel& model, const Checkpoint& checkpoint, const GoldenCase& one) {
  const auto backend = make_cpu_backend(2);
  const int context = static_cast<int>(one.ids.size() + one.greedy.size());
  LoadedModel loaded =
      load_model(checkpoint, *backend, {.max_tokens = 64, .max_logit_rows = 16, .context = context});
  Runner runner(*loaded.decoder, *backend, context);
  const std::vector<float> logits = runner.feed(one.ids, one.rows);
  EXPECT_LE(relative_error(logits, one.logits), model.tolerance) << model.name << ' ' << one.name;
  if (one.greedy.empty()) return;
  runner.reset();
  const std::vector<TokenId> tokens = generate(runner, one.ids, one.greedy.size());
  if (one.min_margin < largest_error(logits, one.logits)) return;
  EXPECT_EQ(tokens, one.greedy) << model.name << ' ' << one.name;
}

}  // namespace

void expect_agreement(const GoldenModel& model) {
  const auto cases = read_golden(model.golden);
  ASSERT_FALSE(cases.empty());
  const auto checkpoint = open_checkpoint(model.path);
  for (const GoldenCase& one : cases) expect_case(model, *checkpoint, one);
}

}  // namespace inferno::testing
