// Steps are really queued ahead, and no more than one.
#include <gtest/gtest.h>

#include "engine/engine_scene.h"
#include "engine/fake_constraints.h"
#include "engine/watched_backend.h"
#include "support/queueing_model_backend.h"

namespace inferno::testing {
namespace {

TEST(Ahead, OneStepIsUnderWayWhileAnotherIsRead) {
  const auto engine = make_engine({});
  const Answer answer = generate(*engine, greedy({1, 2, 3}, 20));
  EXPECT_EQ(answer.tokens.size(), 20u);
  EXPECT_EQ(max_draws_under_way(), 2);
}

// An answer whose end is known ahead wastes no step.
TEST(Ahead, NoStepIsQueuedBehindAFullAnswer) {
  const auto engine = make_engine({});
  for (int i = 0; i < 2; ++i) generate(*engine, greedy({1, 2, 3}, 20));
  wait_until_idle(*engine);
  EXPECT_EQ(engine->stats().steps, 40u);
}

TEST(Ahead, StatisticsTellWhatStepsDidAndHowLongTheyTook) {
  SceneOptions options;
  options.engine.times_steps = true;
  const auto engine = make_engine(options);
  generate(*engine, greedy({1, 2, 3}, 20));
  wait_until_idle(*engine);
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.steps, 20u);
  EXPECT_EQ(stats.decode_steps, 19u);
  EXPECT_EQ(stats.mixed_steps, 0u);
  EXPECT_EQ(stats.step_rows, 3u + 19u);
  EXPECT_GE(stats.ahead_steps, 18u);
  EXPECT_GT(stats.device.busy, 0.0);
  EXPECT_GT(stats.host_seconds, 0.0);
}

TEST(Ahead, GivesTheAnswersOfStepsThatAreReadFirst) {
  SceneOptions options;
  options.engine.plans_ahead = false;
  const auto engine = make_engine(options), ahead = make_engine({});
  Random random(5);
  for (int i = 0; i < 20; ++i) {
    GenerationRequest request = greedy(random_prompt(random, 1 + random.below(40)), 20);
    if (i % 2 == 1) request.sampling.temperature = 1.0f;
    request.sampling.seed = static_cast<std::uint64_t>(i);
    EXPECT_EQ(generate(*ahead, request).tokens, generate(*engine, request).tokens);
  }
}

// The forward pass is queued while a constraint still waits for the token before it.
TEST(Ahead, ConstrainedStepsAreQueuedToo) {
  const auto engine = make_engine({}, watched);
  GenerationRequest request = greedy({1, 2, 3}, 20);
  request.constraint = compiled(even_tokens());
  EXPECT_EQ(generate(*engine, request).tokens.size(), 20u);
  EXPECT_EQ(watch().early_steps, 18);  // all but the prompt and the step after it
}

}  // namespace
}  // namespace inferno::testing
