#include "engine/constrained_answer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace inferno {
namespace {

constexpr int vocab = 40;

// Allows the tokens it is told to.
struct Script {
  std::vector<TokenId> allowed = {1, 2, 3};
  std::vector<TokenId> named = {};
  bool may_end = false, is_finished = false;
  bool fill_throws = false, take_throws = false;
};

class Scripted final : public Constraint {
 public:
  explicit Scripted(const Script& script) : script_(script) {}

  void fill(std::span<std::uint32_t> mask) override {
    if (script_.fill_throws) fail(ErrorKind::unsupported, "a mask of 60 ms: at most 50");
    std::ranges::fill(mask, 0u);
    for (const TokenId token : script_.allowed) {
      mask[static_cast<std::size_t>(token / 32)] |= std::uint32_t{1} << (token % 32);
    }
  }
  void take(TokenId) override {
    if (script_.take_throws) throw std::runtime_error("no such token");
  }
  bool may_end() override { return script_.may_end; }
  bool is_finished() override { return script_.is_finished; }
  bool names(TokenId token) const override {
    return std::ranges::find(script_.named, token) != script_.named.end();
  }
  std::unique_ptr<Constraint> fork() const override { return std::make_unique<Scripted>(script_); }

 private:
  Script script_;
};

ConstrainedAnswer answer(const Script& script, std::vector<TokenId> stop_tokens, int min_end = 0) {
  return {std::make_unique<Scripted>(script), stop_tokens, min_end, vocab};
}

std::vector<TokenId> filled(ConstrainedAnswer& answer, int position = 10) {
  std::vector<std::uint32_t> mask(2, 0xDEADBEEFu);
  answer.fill(mask, position);
  std::vector<TokenId> tokens;
  for (TokenId token = 0; token < 64; ++token) {
    if ((mask[static_cast<std::size_t>(token / 32)] >> (token % 32) & 1u) != 0) tokens.push_back(token);
  }
  return tokens;
}

TEST(ConstrainedAnswer, StopsOnlyWhereTheConstraintMayEnd) {
  ConstrainedAnswer open = answer({}, {3, 33, -7, 1000});
  EXPECT_EQ(filled(open), (std::vector<TokenId>{1, 2}));
  ConstrainedAnswer whole = answer({.may_end = true}, {3, 33, -7, 1000});
  EXPECT_EQ(filled(whole), (std::vector<TokenId>{1, 2, 3, 33}));
}

TEST(ConstrainedAnswer, LeavesTheStopTokensThatTheConstraintNames) {
  ConstrainedAnswer one = answer({.allowed = {1, 33}, .named = {33, 34}, .may_end = true}, {33, 34, 35});
  EXPECT_EQ(filled(one), (std::vector<TokenId>{1, 33, 35}));
}

TEST(ConstrainedAnswer, DoesNotStopBeforeItsMinimum) {
  ConstrainedAnswer one = answer({.may_end = true}, {33}, /*min_end=*/12);
  EXPECT_EQ(filled(one, 11), (std::vector<TokenId>{1, 2, 3}));
  EXPECT_EQ(filled(one, 12), (std::vector<TokenId>{1, 2, 3, 33}));
}

TEST(ConstrainedAnswer, StopsBeforeItsMinimumIfNothingElseIsLeft) {
  ConstrainedAnswer one = answer({.allowed = {}, .may_end = true}, {33}, /*min_end=*/12);
  EXPECT_EQ(filled(one, 5), (std::vector<TokenId>{33}));
  ConstrainedAnswer beyond = answer({.allowed = {vocab, 63}, .may_end = true}, {33}, /*min_end=*/12);
  EXPECT_EQ(filled(beyond, 5), (std::vector<TokenId>{33}));  // no token has the others' ids
  ConstrainedAnswer named = answer({.allowed = {34}, .named = {34}}, {33, 34}, /*min_end=*/12);
  EXPECT_EQ(filled(named, 5), (std::vector<TokenId>{34}));
}

TEST(ConstrainedAnswer, AllowsNothingOnceAMaskFailed) {
  ConstrainedAnswer one = answer({.may_end = true, .fill_throws = true}, {33});
  EXPECT_EQ(filled(one), std::vector<TokenId>{});
  ASSERT_TRUE(one.failure().has_value());
  EXPECT_EQ(one.failure()->message, "a mask of 60 ms: at most 50");
  EXPECT_EQ(one.failure()->kind, ErrorKind::unsupported);
  EXPECT_FALSE(one.take(1));
}

TEST(ConstrainedAnswer, AllowsNothingOnceATokenFailed) {
  ConstrainedAnswer one = answer({.is_finished = true, .take_throws = true}, {});
  EXPECT_EQ(filled(one), (std::vector<TokenId>{1, 2, 3}));
  EXPECT_FALSE(one.take(1));
  EXPECT_EQ(one.failure()->message, "no such token");
  EXPECT_FALSE(one.failure()->kind.has_value());
  EXPECT_EQ(filled(one), std::vector<TokenId>{});
}

TEST(ConstrainedAnswer, SaysWhenItIsComplete) {
  ConstrainedAnswer open = answer({}, {}), complete = answer({.is_finished = true}, {});
  EXPECT_FALSE(open.take(1));
  EXPECT_TRUE(complete.take(1));
}

}  // namespace
}  // namespace inferno
