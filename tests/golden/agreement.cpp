#include "golden/agreement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <variant>

#include "model/load.h"
#include "model/runner.h"
#include "support/golden.h"
#include "support/model_backend.h"

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

bool mixes_experts(const ModelSpec& spec) {
  return std::ranges::any_of(
      spec.blocks, [](const BlockSpec& block) { return std::holds_alternative<MoeMlp>(block.mlp); });
}

// Positions whose logits are too far off. Rounding may send a token to another expert, and every later token
// of the sequence then sees other keys and values; in all models together such positions must stay few.
struct Strays {
  int positions = 0, strays = 0;

  void add(const std::string& name, const std::vector<float>& logits, const GoldenCase& one,
           double tolerance) {
    const std::size_t vocab = one.logits.size() / static_cast<std::size_t>(one.rows);
    for (int row = 0; row < one.rows; ++row) {
      const auto first = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row) * vocab);
      const auto last = first + static_cast<std::ptrdiff_t>(vocab);
      const double error = relative_error({logits.begin() + first, logits.begin() + last},
                                          {one.logits.begin() + first, one.logits.begin() + last});
      ++positions;
      if (error <= tolerance) continue;
      ++strays;
      std::cout << "stray: " << name << ' ' << one.name << ", row " << row << ", distance " << error << '\n';
    }
  }
};

// What a whole run of the program saw: checked at its end, unless only a few models were chosen.
class Everything : public ::testing::Environment {
 public:
  void add(const std::vector<GoldenCase>& cases, const Strays& strays) {
    for (const GoldenCase& one : cases) positions_ += one.rows;
    strays_ += strays.strays;
  }
  void TearDown() override {
    constexpr int enough = 400;
    std::cout << strays_ << " strays among " << positions_ << " positions\n";
    if (positions_ < enough) return;
    EXPECT_LE(strays_, model_backend().misrouted * positions_);
  }

 private:
  int positions_ = 0, strays_ = 0;
};

Everything& everything() {
  static auto* environment =
      static_cast<Everything*>(::testing::AddGlobalTestEnvironment(new Everything));  // owned by GoogleTest
  return *environment;
}

// Loaded for exactly as many positions as the case needs: LongRoPE chooses its factors by that.
void expect_case(const GoldenModel& model, const Checkpoint& checkpoint, const GoldenCase& one,
                 Strays& strays) {
  const auto backend = model_backend().make(2);
  const int context = static_cast<int>(one.ids.size() + one.greedy.size());
  LoadedModel loaded =
      load_model(checkpoint, *backend, {.max_tokens = 64, .max_logit_rows = 16, .context = context});
  Runner runner(*loaded.decoder, *backend, context);
  const std::vector<float> logits = runner.feed(one.ids, one.rows);
  if (mixes_experts(loaded.decoder->spec()) && model_backend().misrouted > 0.0) {
    strays.add(model.name, logits, one, model.tolerance);
  } else {
    const double error = relative_error(logits, one.logits);
    std::cout << model.name << ' ' << one.name << ": distance " << error << '\n';
    EXPECT_LE(error, model.tolerance) << model.name << ' ' << one.name;
  }
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
  Strays strays;
  for (const GoldenCase& one : cases) expect_case(model, *checkpoint, one, strays);
  EXPECT_LT(strays.strays, std::max(strays.positions, 1)) << model.name << ": not one position agrees";
  everything().add(cases, strays);
}

}  // namespace inferno::testing
