#include "engine/fake_constraints.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/error.h"

namespace inferno::testing {
namespace {

std::atomic<int> live = 0;

struct Counted {
  Counted() { ++live; }
  Counted(const Counted&) { ++live; }
  Counted& operator=(const Counted&) = default;
  ~Counted() { --live; }
};

// Counts itself, so that a test sees whether rules, and hence constraints, are freed.
std::function<bool(std::span<const TokenId>)> counted(std::function<bool(std::span<const TokenId>)> rule) {
  return [rule = std::move(rule), count = Counted()](std::span<const TokenId> taken) { return rule(taken); };
}

}  // namespace

void FakeConstraint::fill(std::span<std::uint32_t> mask) {
  for (std::size_t word = 0; word < mask.size(); ++word) {
    mask[word] = 0;
    for (int bit = 0; bit < 32; ++bit) {
      const TokenId token = static_cast<TokenId>(word * 32) + bit;
      if (rules_.allows(taken_, token)) mask[word] |= std::uint32_t{1} << bit;
    }
  }
}

void FakeConstraint::take(TokenId token) {
  expects(rules_.allows(taken_, token), "the engine takes only what was allowed");
  taken_.push_back(token);
}

bool FakeConstraint::names(TokenId token) const {
  return std::ranges::find(rules_.named, token) != rules_.named.end();
}

std::unique_ptr<Constraint> FakeConstraint::fork() const {
  return std::make_unique<FakeConstraint>(*this);
}

std::shared_ptr<PendingConstraint> compiled(FakeRules rules) {
  rules.is_finished = counted(std::move(rules.is_finished));
  return std::make_shared<PendingConstraint>(std::make_unique<const FakeConstraint>(std::move(rules)));
}

FakeRules even_tokens() {
  return {.allows = [](auto, TokenId token) { return token % 2 == 0; }};
}

FakeRules climbing_tokens() {
  return {.allows = [](std::span<const TokenId> taken, TokenId token) {
    return token < 10 || taken.empty() || token > taken.back();
  }};
}

FakeRules exactly(std::vector<TokenId> tokens) {
  const auto next = [tokens](std::span<const TokenId> taken, TokenId token) {
    return taken.size() < tokens.size() && token == tokens[taken.size()];
  };
  const auto is_whole = [count = tokens.size()](std::span<const TokenId> taken) {
    return taken.size() == count;
  };
  return {.allows = next, .may_end = is_whole, .is_finished = is_whole};
}

int live_constraints() {
  return live.load();
}

}  // namespace inferno::testing
