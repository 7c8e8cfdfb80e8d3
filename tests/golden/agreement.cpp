#include "golden/agreement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <variant>

#include "checkpoint/open_checkpoint.h"
#include "golden/routing.h"
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

// Relative distance of each row.
std::vector<double> row_errors(const std::vector<float>& logits, const std::vector<float>& expected,
                               int rows) {
  std::vector<double> out;
  const auto vocab = static_cast<std::ptrdiff_t>(expected.size()) / rows;
  for (std::ptrdiff_t row = 0; row < rows; ++row) {
    out.push_back(relative_error({logits.begin() + row * vocab, logits.begin() + (row + 1) * vocab},
                                 {expected.begin() + row * vocab, expected.begin() + (row + 1) * vocab}));
  }
  return out;
}

double largest(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

// What a whole run of the program saw: checked at its end, unless only a few models were chosen.
class Everything : public ::testing::Environment {
 public:
  void add(int positions, int strays, int detours, double worst) {
    positions_ += positions;
    strays_ += strays;
    detours_ += detours;
    worst_ = std::max(worst_, worst);
  }
  void TearDown() override {
    constexpr int enough = 400;
    std::cout << positions_ << " positions; " << strays_ << " beyond the tolerance after " << detours_
              << " near ties of routers; otherwise the farthest position is " << worst_ << " off\n";
    const bool is_part = std::getenv("GTEST_TOTAL_SHARDS") != nullptr;  // run_all.py adds up the parts
    if (positions_ < enough || is_part) return;
    EXPECT_LE(strays_, model_backend().misrouted * positions_);
  }

 private:
  int positions_ = 0, strays_ = 0, detours_ = 0;
  double worst_ = 0.0;
};

Everything& everything() {
  static auto* environment =
      static_cast<Everything*>(::testing::AddGlobalTestEnvironment(new Everything));  // owned by GoogleTest
  return *environment;
}

// A model with its sequence, loaded for exactly as many positions as the case needs: LongRoPE chooses its
// factors by that.
struct Loaded {
  Loaded(const Checkpoint& checkpoint, std::unique_ptr<Backend> a_backend, int context)
      : backend(std::move(a_backend)),
        model(load_model(checkpoint, *backend, {.max_tokens = 64, .max_logit_rows = 16, .context = context})),
        runner(*model.decoder, *backend, context) {}

  std::unique_ptr<Backend> backend;
  LoadedModel model;
  Runner runner;
};

class Case {
 public:
  Case(const GoldenModel& model, const Checkpoint& checkpoint, const GoldenCase& golden)
      : model_(model),
        checkpoint_(checkpoint),
        golden_(golden),
        context_(static_cast<int>(golden.ids.size() + golden.greedy.size())),
        may_take_other_experts_(model_backend().misrouted > 0.0 &&
                                mixes_experts(describe_model(checkpoint).spec)) {}

  // The whole prompt in one step, and token by token if that uses other kernels.
  void run() {
    run_one("at once", &Case::at_once);
    if (!model_backend().promises_bits) run_one("token by token", &Case::token_by_token);
  }

 private:
  std::vector<float> at_once(Runner& runner) const { return runner.feed(golden_.ids, golden_.rows); }

  std::vector<float> token_by_token(Runner& runner) const {
    std::vector<float> logits;
    const std::size_t quiet = golden_.ids.size() - static_cast<std::size_t>(golden_.rows);
    for (std::size_t i = 0; i < golden_.ids.size(); ++i) {
      const std::vector<float> row = runner.feed(std::span(&golden_.ids[i], 1), i < quiet ? 0 : 1);
      logits.insert(logits.end(), row.begin(), row.end());
    }
    return logits;
  }

  void run_one(const std::string& way, std::vector<float> (Case::*feed)(Runner&) const) {
    label_ = model_.name + " " + golden_.name + " " + way;
    SCOPED_TRACE(label_);
    routes_.clear();
    std::unique_ptr<Backend> backend = model_backend().make(2);
    if (may_take_other_experts_) backend = recording(std::move(backend), routes_);
    Loaded loaded(checkpoint_, std::move(backend), context_);
    const std::vector<float> logits = (this->*feed)(loaded.runner);
    const std::vector<double> errors = row_errors(logits, golden_.logits, golden_.rows);
    std::cout << label_ << ": distance " << relative_error(logits, golden_.logits)
              << ", of one position at most " << largest(errors) << '\n';
    const int near_tie = may_take_other_experts_ ? first_near_tie(logits) : context_;
    expect_agreement_before(near_tie, logits, errors);
    expect_greedy(loaded.runner, logits);
  }

  int position_of(int row) const { return static_cast<int>(golden_.ids.size()) - golden_.rows + row; }

  // The first position at which routers chose other experts than in float. They may do so only if their
  // logits are closer than the tolerance; and the float model with the same experts must agree at every
  // position.
  int first_near_tie(const std::vector<float>& logits) {
    std::vector<Detour> detours;
    Loaded same(checkpoint_, repeating(make_cpu_backend(2), routes_, detours), context_);
    const std::vector<float> expected = same.runner.feed(golden_.ids, golden_.rows);
    const double worst = largest(row_errors(logits, expected, golden_.rows));
    EXPECT_LE(worst, model_.tolerance * model_backend().one_position) << "with the same experts";
    everything().add(0, 0, static_cast<int>(detours.size()), worst);
    int first = context_;
    for (const Detour& detour : detours) {
      first = std::min(first, detour.position);
      // Two entries of a vector known to this relative distance: each may be off by that, in either
      // direction.
      const double doubt = std::sqrt(2.0) * model_.tolerance * detour.scale;
      EXPECT_LE(detour.gap, doubt) << "layer " << detour.layer << ", position " << detour.position;
    }
    return first;
  }

  // All positions together are within the tolerance, and each alone nearly so. Positions after a near tie may
  // be farther off: they are listed and counted.
  void expect_agreement_before(int near_tie, const std::vector<float>& logits,
                               const std::vector<double>& errors) {
    const auto vocab = static_cast<std::ptrdiff_t>(golden_.logits.size()) / golden_.rows;
    std::vector<float> found, expected;
    int strays = 0;
    double worst = 0.0;
    for (int row = 0; row < golden_.rows; ++row) {
      const double error = errors[static_cast<std::size_t>(row)];
      if (error > model_.tolerance && position_of(row) >= near_tie) {
        ++strays;
        std::cout << "stray: " << label_ << ", position " << position_of(row) << ", distance " << error
                  << ", first near tie of a router at " << near_tie << '\n';
        continue;
      }
      worst = std::max(worst, error);
      found.insert(found.end(), logits.begin() + row * vocab, logits.begin() + (row + 1) * vocab);
      expected.insert(expected.end(), golden_.logits.begin() + row * vocab,
                      golden_.logits.begin() + (row + 1) * vocab);
    }
    everything().add(golden_.rows, strays, 0, worst);
    EXPECT_LE(worst, model_.tolerance * model_backend().one_position);
    if (!found.empty()) {
      EXPECT_LE(relative_error(found, expected), model_.tolerance);
    }
  }

  void expect_greedy(Runner& runner, const std::vector<float>& logits) const {
    if (golden_.greedy.empty()) return;
    runner.reset();
    const std::vector<TokenId> tokens = generate(runner, golden_.ids, golden_.greedy.size());
    if (golden_.min_margin < largest_error(logits, golden_.logits)) return;
    EXPECT_EQ(tokens, golden_.greedy);
  }

  const GoldenModel& model_;
  const Checkpoint& checkpoint_;
  const GoldenCase& golden_;
  int context_;
  bool may_take_other_experts_;
  std::vector<Routes> routes_;
  std::string label_;
};

}  // namespace

void expect_agreement(const GoldenModel& model) {
  const auto cases = read_golden(model.golden);
  ASSERT_FALSE(cases.empty());
  const auto checkpoint = open_checkpoint(model.path);
  for (const GoldenCase& one : cases) Case(model, *checkpoint, one).run();
}

}  // namespace inferno::testing
