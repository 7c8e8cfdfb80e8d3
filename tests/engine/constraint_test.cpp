// Answers under a constraint: what they may contain, how they end, and what happens while it is compiled.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "engine/engine_scene.h"
#include "engine/fake_constraints.h"
#include "engine/watched_backend.h"
#include "support/caught_error.h"

namespace inferno::testing {
namespace {

GenerationRequest constrained(std::shared_ptr<PendingConstraint> constraint, int max_tokens = 20) {
  GenerationRequest request = greedy({8, 9, 10}, max_tokens);
  request.constraint = std::move(constraint);
  return request;
}

void expect_everything_free(const Engine& engine) {
  wait_until_idle(engine);
  EXPECT_EQ(engine.stats().free_blocks, engine.stats().blocks);
}

TEST(Constraints, HoldForEveryToken) {
  const auto engine = make_engine({});
  for (const float temperature : {0.0f, 1.5f}) {
    GenerationRequest request = constrained(compiled(even_tokens()), 40);
    request.sampling.temperature = temperature;
    request.sampling.seed = 3;
    const Answer answer = generate(*engine, request);
    EXPECT_EQ(answer.tokens.size(), 40u);
    EXPECT_TRUE(std::ranges::all_of(answer.tokens, [](TokenId token) { return token % 2 == 0; }));
    EXPECT_EQ(answer.finished->reason, FinishReason::length);
    EXPECT_EQ(generate(*engine, request).tokens, answer.tokens);  // a constraint is not used up
  }
}

TEST(Constraints, ThatAllowEverythingChangeNothing) {
  const auto engine = make_engine({});
  const Answer expected = generate(*engine, greedy({8, 9, 10}, 20));
  wait_until_idle(*engine);
  EXPECT_EQ(engine->stats().mask_seconds, 0.0);
  EXPECT_EQ(generate(*engine, constrained(compiled({}))).tokens, expected.tokens);
}

TEST(Constraints, EndTheAnswerWhereNothingCanFollow) {
  const auto engine = make_engine({});
  const std::vector<TokenId> text = {5, 4, 3, 99, 0, 64, 31, 32};
  for (const int max_tokens : {20, 8}) {  // 8: the limit is reached with the same token
    GenerationRequest request = constrained(compiled(exactly(text)), max_tokens);
    request.min_tokens = 15;
    request.stop_tokens = {7};
    const Answer answer = generate(*engine, request);
    EXPECT_EQ(answer.tokens, text);
    EXPECT_EQ(answer.finished->reason, FinishReason::stop);
  }
  const Answer cut = generate(*engine, constrained(compiled(exactly(text)), 5));
  EXPECT_EQ(cut.tokens, std::vector<TokenId>(text.begin(), text.begin() + 5));
  EXPECT_EQ(cut.finished->reason, FinishReason::length);
  expect_everything_free(*engine);
}

// Even tokens, which may end after six.
FakeRules six_even_tokens() {
  FakeRules rules = even_tokens();
  rules.may_end = [](std::span<const TokenId> taken) { return taken.size() >= 6; };
  return rules;
}

TEST(Constraints, AllowStopTokensOnlyWhereTheyMayEnd) {
  const auto engine = make_engine({});
  for (const TokenId stop : {7, 8}) {  // one that the rule forbids, and one that it allows
    GenerationRequest request = constrained(compiled(six_even_tokens()), 30);
    request.stop_tokens = {-5, stop, 12345};
    request.sampling.logit_bias = {{stop, 1000.0f}};
    const Answer answer = generate(*engine, request);
    ASSERT_EQ(answer.tokens.size(), 7u);
    EXPECT_EQ(std::ranges::find(answer.tokens, stop) - answer.tokens.begin(), 6);
    EXPECT_EQ(answer.finished->reason, FinishReason::stop);
    request.min_tokens = 9;
    EXPECT_EQ(generate(*engine, request).tokens.size(), 10u);
  }
}

TEST(Constraints, KeepTheModelsOwnLogProbabilities) {
  const auto engine = make_engine({});
  GenerationRequest free = greedy({8, 9, 10}, 1);
  free.sampling.allowed = {42};
  free.sampling.logprobs = 0;
  GenerationRequest request = constrained(compiled(exactly({42})));
  request.sampling.logprobs = 0;
  const Answer expected = generate(*engine, free), found = generate(*engine, request);
  EXPECT_EQ(found.tokens, expected.tokens);
  EXPECT_EQ(found.logprobs, expected.logprobs);
}

TEST(Constraints, EachChoiceHasItsOwn) {
  const auto engine = make_engine({});
  GenerationRequest request = constrained(compiled(climbing_tokens()), 25);
  request.sampling.temperature = 2.0f;
  request.sampling.seed = 100;
  request.choices = 5;
  const std::vector<Answer> answers = read(*engine->submit(request), 5);
  for (const Answer& answer : answers) {
    ASSERT_EQ(answer.tokens.size(), 25u) << answer.failed.value_or("");
    for (std::size_t i = 1; i < answer.tokens.size(); ++i) {
      EXPECT_TRUE(answer.tokens[i] < 10 || answer.tokens[i] > answer.tokens[i - 1]);
    }
  }
  EXPECT_NE(answers[0].tokens, answers[1].tokens);
  expect_everything_free(*engine);
}

TEST(Constraints, FailTheirRequestWhenNothingIsLeft) {
  const auto engine = make_engine({});
  const auto good = engine->submit(greedy({8, 9}, 30));
  GenerationRequest request = constrained(compiled(exactly({1, 2, 3})));
  request.sampling.banned = {3};
  const Answer banned = generate(*engine, request);
  EXPECT_EQ(banned.tokens, (std::vector<TokenId>{1, 2}));
  ASSERT_TRUE(banned.failed.has_value());
  EXPECT_NE(banned.failed->find("constraint"), std::string::npos) << *banned.failed;
  request.sampling.banned.clear();
  request.sampling.allowed = {4};
  EXPECT_TRUE(generate(*engine, request).tokens.empty());
  FakeRules nothing = {.allows = [](auto, TokenId) { return false; }};
  EXPECT_TRUE(generate(*engine, constrained(compiled(nothing))).failed.has_value());
  EXPECT_EQ(read(*good)[0].tokens.size(), 30u);
  expect_everything_free(*engine);
}

TEST(Constraints, ThatThrowFailTheirRequestAlone) {
  const auto engine = make_engine({});
  const auto good = engine->submit(constrained(compiled(even_tokens()), 40));
  FakeRules rules = {.allows = [](std::span<const TokenId> taken, TokenId) {
    if (taken.size() == 3) fail(ErrorKind::unsupported, "a mask of 60 ms: at most 50");
    return true;
  }};
  const auto stream = engine->submit(constrained(compiled(rules)));
  int tokens = 0;
  std::optional<Failed> failed;
  while (const auto event = stream->next(std::chrono::seconds(10))) {
    tokens += std::holds_alternative<Sampled>(*event) ? 1 : 0;
    if (const auto* failure = std::get_if<Failed>(&*event)) failed = *failure;
  }
  EXPECT_EQ(tokens, 3);
  ASSERT_TRUE(failed.has_value());
  EXPECT_EQ(failed->message, "a mask of 60 ms: at most 50");
  EXPECT_EQ(failed->kind, ErrorKind::unsupported);
  EXPECT_EQ(read(*good)[0].tokens.size(), 40u);
  EXPECT_TRUE(engine->healthy());
  expect_everything_free(*engine);
}

TEST(Constraints, PoisonedLogitsAreStillReported) {
  const auto engine = make_engine({}, watched);
  GenerationRequest request = constrained(compiled(even_tokens()));
  request.sampling.top_k = poisoned_top_k;
  EXPECT_NE(generate(*engine, request).failed->find("not a finite number"), std::string::npos);
}

// Compiles until `go`, unless it is stopped.
struct SlowCompile {
  std::atomic<bool> go = false;
  std::atomic<int> begun = 0, stopped = 0;

  ConstraintCompiler::Compile compile() {
    return [this](const std::stop_token& stop) -> std::unique_ptr<const Constraint> {
      ++begun;
      while (!go) {
        if (stop.stop_requested()) {
          ++stopped;
          fail(ErrorKind::invalid_request, "stopped");
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      return std::make_unique<FakeConstraint>(even_tokens());
    };
  }
  void wait_until_begun(int count) const {
    while (begun < count) std::this_thread::yield();
  }
};

TEST(Compiling, HoldsUpItsOwnRequestAlone) {
  SlowCompile slow_compile;
  ConstraintCompiler compiler;
  const auto engine = make_engine({});
  const auto slow = engine->submit(constrained(compiler.compile(slow_compile.compile()), 10));
  EXPECT_EQ(generate(*engine, greedy({1, 2}, 30)).tokens.size(), 30u);
  EXPECT_EQ(generate(*engine, constrained(compiled(even_tokens()), 30)).tokens.size(), 30u);
  EXPECT_FALSE(slow->next(std::chrono::milliseconds(20)).has_value());
  EXPECT_EQ(engine->stats().waiting, 1);
  EXPECT_LT(engine->heartbeat_age(), 5.0);
  slow_compile.go = true;
  EXPECT_EQ(read(*slow)[0].tokens.size(), 10u);
  EXPECT_EQ(slow_compile.stopped, 0);
  expect_everything_free(*engine);
}

TEST(Compiling, FailsItsRequestBeforeTheFirstToken) {
  ConstraintCompiler compiler;
  const auto engine = make_engine({});
  const auto pending = compiler.compile([](const std::stop_token&) -> std::unique_ptr<const Constraint> {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    fail(ErrorKind::invalid_request, "#/type: expected a string");
  });
  const Answer answer = generate(*engine, constrained(pending));
  EXPECT_TRUE(answer.tokens.empty());
  EXPECT_EQ(answer.failed, "#/type: expected a string");
  EXPECT_EQ(caught_error([&] { pending->get(); }).kind(), ErrorKind::invalid_request);
  EXPECT_TRUE(engine->healthy());
  expect_everything_free(*engine);
}

TEST(Compiling, IsStoppedWhenTheRequestIsCancelled) {
  SlowCompile slow_compile;
  ConstraintCompiler compiler(1);
  const auto engine = make_engine({});
  const auto first = compiler.compile(slow_compile.compile());
  const auto second = compiler.compile(slow_compile.compile());  // waits for the thread
  GenerationRequest forked = constrained(first);
  forked.choices = 3;
  const auto compiling = engine->submit(forked), queued = engine->submit(constrained(second));
  slow_compile.wait_until_begun(1);
  for (const auto& stream : {queued, compiling}) stream->cancel();
  for (const Answer& answer : read(*compiling, 3)) {
    EXPECT_EQ(answer.finished->reason, FinishReason::cancelled);
    EXPECT_EQ(answer.finished->generated_tokens, 0);
  }
  EXPECT_EQ(read(*queued)[0].finished->reason, FinishReason::cancelled);
  first->wait();
  second->wait();
  EXPECT_EQ(slow_compile.stopped, 1);
  expect_everything_free(*engine);
}

TEST(Compiling, IsStoppedWhenTheRequestIsRefusedOrTheEngineGoes) {
  SlowCompile slow_compile;
  ConstraintCompiler compiler;
  auto engine = make_engine({});
  GenerationRequest impossible = constrained(compiler.compile(slow_compile.compile()));
  impossible.max_tokens = -1;
  slow_compile.wait_until_begun(1);
  EXPECT_THROW(engine->submit(std::move(impossible)), Error);
  const auto pending = compiler.compile(slow_compile.compile());
  const auto stream = engine->submit(constrained(pending));
  slow_compile.wait_until_begun(2);
  engine.reset();
  EXPECT_TRUE(read(*stream)[0].failed.has_value());
  pending->wait();
  while (slow_compile.stopped < 2) std::this_thread::yield();
}

TEST(Constraints, LeaveNothingBehindWheneverTheyAreCancelled) {
  const int before = live_constraints();
  {
    SceneOptions options;
    options.engine.max_sequences = 4;
    const auto engine = make_engine(options);
    ConstraintCompiler compiler(2);
    Random random(3);
    std::vector<std::shared_ptr<TokenStream>> streams;
    for (int i = 0; i < 300; ++i) {
      GenerationRequest request = constrained(compiled(climbing_tokens()), 1 + random.below(30));
      if (i % 3 == 0) {
        request.constraint = compiler.compile([pause = random.below(300)](const std::stop_token& stop) {
          std::this_thread::sleep_for(std::chrono::microseconds(pause));
          if (stop.stop_requested()) fail(ErrorKind::invalid_request, "stopped");
          return std::make_unique<const FakeConstraint>(even_tokens());
        });
      }
      request.prompt = counted_prompt(1 + random.below(60));
      request.choices = 1 + random.below(3);
      streams.push_back(engine->submit(std::move(request)));
      if (random.below(3) > 0) streams[static_cast<std::size_t>(random.below(i + 1))]->cancel();
      if (random.below(2) == 0) streams.back()->cancel();
      if (i % 30 == 0) wait_until_idle(*engine);
    }
    expect_everything_free(*engine);
  }
  EXPECT_EQ(live_constraints(), before);
}

}  // namespace
}  // namespace inferno::testing
