#include "service/constraint_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "chat/vocabulary_scene.h"
#include "grammar/grammar.h"

namespace inferno {
namespace {

using Kind = TextConstraint::Kind;

ReplyConstraint matching(std::string expression) {
  return {.text = TextConstraint{.kind = Kind::regex, .source = std::move(expression), .place = "/regex"}};
}

bool allows(Constraint& constraint, const Tokenizer& tokenizer, TokenId token) {
  std::vector<std::uint32_t> mask((static_cast<std::size_t>(tokenizer.size()) + 31) / 32);
  constraint.fill(mask);
  return (mask[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1) != 0;
}

TEST(ConstraintStore, FollowsAnAnswerAndForks) {
  const auto tokenizer = harmony_vocabulary();
  ConstraintStore store(*tokenizer);
  const auto pending = store.compile(matching("ab?"), {}, nullptr);
  pending->wait();
  const TokenId a = tokenizer->encode("a").front(), b = tokenizer->encode("b").front();
  const auto first = pending->get().fork();
  EXPECT_TRUE(allows(*first, *tokenizer, a));
  EXPECT_FALSE(allows(*first, *tokenizer, b));
  first->take(a);
  EXPECT_TRUE(first->may_end());
  EXPECT_FALSE(first->is_finished());
  const auto second = first->fork();
  second->take(b);
  EXPECT_TRUE(second->is_finished());
  EXPECT_FALSE(first->is_finished());
  EXPECT_FALSE(first->names(*tokenizer->special("<|return|>")));
}

TEST(ConstraintStore, LetsHarmonyPlaceItsOwnStopTokens) {
  const auto tokenizer = harmony_vocabulary();
  ConstraintStore store(*tokenizer);
  const auto pending = store.compile({}, {.kind = ReplyShape::Kind::channels}, nullptr);
  pending->wait();
  const auto constraint = pending->get().fork();
  const TokenId finish = *tokenizer->special("<|return|>");
  EXPECT_TRUE(constraint->names(finish));
  EXPECT_FALSE(constraint->names(*tokenizer->special("<|endoftext|>")));
  EXPECT_TRUE(constraint->names(tokenizer->encode("x").front()));  // a stop token that is text
  EXPECT_FALSE(allows(*constraint, *tokenizer, finish));
  constraint->take(*tokenizer->special("<|channel|>"));
  for (const TokenId token : tokenizer->encode("final")) constraint->take(token);
  constraint->take(*tokenizer->special("<|message|>"));
  EXPECT_TRUE(allows(*constraint, *tokenizer, finish));
}

TEST(ConstraintStore, NeedsNoConstraintForFreeText) {
  const auto tokenizer = harmony_vocabulary();
  ConstraintStore store(*tokenizer);
  EXPECT_EQ(store.compile({}, {}, nullptr), nullptr);
}

TEST(ConstraintStore, ReportsErrorsThatNameTheField) {
  const auto tokenizer = harmony_vocabulary();
  ConstraintStore store(*tokenizer);
  const auto pending = store.compile(matching("(a"), {}, nullptr);
  pending->wait();
  try {
    pending->get();
    FAIL() << "the expression is wrong";
  } catch (const ConstraintError& error) {
    EXPECT_EQ(error.param(), "regex");
    EXPECT_EQ(error.kind(), ErrorKind::invalid_request);
  }
}

TEST(ConstraintStore, LeavesAMessageOutsideOfHarmonyFreeUnlessItIsConstrained) {
  const auto tokenizer = harmony_vocabulary();
  ConstraintStore store(*tokenizer);
  const ReplyShape odd = {.kind = ReplyShape::Kind::channels,
                          .begun = {{true, "<|channel|>"}, {false, "diary"}, {true, "<|message|>"}}};
  const auto free = store.compile({}, odd, nullptr);
  free->wait();
  EXPECT_TRUE(allows(*free->get().fork(), *tokenizer, *tokenizer->special("<|end|>")));
  const auto constrained = store.compile(matching("a"), odd, nullptr);
  constrained->wait();
  EXPECT_THROW(constrained->get(), ConstraintError);
}

TEST(GrammarCache, ForgetsTheLeastRecentlyUsed) {
  GrammarCache cache;
  const auto grammar = grammar::compile_regex("a");
  int compiled = 0;
  const auto get = [&](const std::string& key) {
    const auto compile = [&] {
      ++compiled;
      return grammar;
    };
    cache.get(key, compile, {});
  };
  for (std::size_t i = 0; i < GrammarCache::max_grammars; ++i) get(std::to_string(i));
  get("0");
  get("one more");
  compiled = 0;
  get("0");
  EXPECT_EQ(compiled, 0);
  EXPECT_EQ(cache.size(), GrammarCache::max_grammars);
  get("1");
  EXPECT_EQ(compiled, 1);
  get("large" + std::string(GrammarCache::max_bytes, 'x'));
  EXPECT_EQ(cache.size(), 0U);
}

TEST(GrammarCache, CompilesOnceWhatSeveralThreadsWantAtOnce) {
  GrammarCache cache;
  std::atomic<int> compiled = 0;
  std::atomic<bool> may_end = false;
  const auto compile = [&] {
    ++compiled;
    while (!may_end) std::this_thread::yield();
    return grammar::compile_regex("a");
  };
  std::vector<std::thread> threads;
  std::atomic<int> done = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      cache.get("key", compile, {});
      ++done;
    });
  }
  while (compiled == 0) std::this_thread::yield();
  // One that waits can be cancelled without disturbing the others.
  std::stop_source cancelled;
  cancelled.request_stop();
  EXPECT_THROW(cache.get("key", compile, cancelled.get_token()), Error);
  may_end = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(compiled, 1);
  EXPECT_EQ(done, 4);
}

TEST(GrammarCache, TriesAgainWhenAnotherThreadFailed) {
  GrammarCache cache;
  EXPECT_THROW(cache.get("key", [] { return grammar::compile_regex("("); }, {}), Error);
  EXPECT_NE(cache.get("key", [] { return grammar::compile_regex("a"); }, {}).grammar, nullptr);
}

}  // namespace
}  // namespace inferno
