// Small constraints whose answers a test can check by hand.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/pending_constraint.h"
#include "engine/request.h"

namespace inferno::testing {

// A rule for the next token, given those before it.
struct FakeRules {
  std::function<bool(std::span<const TokenId>, TokenId)> allows = [](auto, TokenId) { return true; };
  std::function<bool(std::span<const TokenId>)> may_end = [](auto) { return false; };
  std::function<bool(std::span<const TokenId>)> is_finished = [](auto) { return false; };
  std::vector<TokenId> named = {};
};

class FakeConstraint final : public Constraint {
 public:
  explicit FakeConstraint(FakeRules rules) : rules_(std::move(rules)) {}

  void fill(std::span<std::uint32_t> mask) override;
  void take(TokenId token) override;
  bool may_end() override { return rules_.may_end(taken_); }
  bool is_finished() override { return rules_.is_finished(taken_); }
  bool names(TokenId token) const override;
  std::unique_ptr<Constraint> fork() const override;

 private:
  FakeRules rules_;
  std::vector<TokenId> taken_;
};

std::shared_ptr<PendingConstraint> compiled(FakeRules rules);

FakeRules even_tokens();
// Each token is larger than the one before it, or one of the first few: its state matters.
FakeRules climbing_tokens();
// These tokens, and then nothing.
FakeRules exactly(std::vector<TokenId> tokens);

// How many FakeConstraints exist.
int live_constraints();

}  // namespace inferno::testing
