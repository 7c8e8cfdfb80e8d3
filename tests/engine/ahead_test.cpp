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
  EXPECT_EQ(stats.ahead_steps, 19u) << "all but the prompt";
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

// Prompts, admissions and answers that end by their length do not interrupt it.
TEST(Ahead, StepsOfMixedBatchesAreQueuedToo) {
  SceneOptions options;
  options.engine = {
      .max_sequences = 4, .max_step_tokens = 16, .max_prompt_tokens = 12, .prefix_cache = false};
  const auto engine = make_engine(options);
  options.engine.max_sequences = 1;
  options.engine.plans_ahead = false;
  const auto alone = make_engine(options);
  Random random(9);
  std::vector<GenerationRequest> requests;
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int i = 0; i < 24; ++i) {
    GenerationRequest request = greedy(random_prompt(random, 1 + random.below(40)), 1 + random.below(12));
    request.sampling.temperature = i % 2 == 0 ? 0.0f : 1.0f;
    request.sampling.seed = static_cast<std::uint64_t>(i);
    streams.push_back(engine->submit(request));
    requests.push_back(std::move(request));
  }
  for (std::size_t i = 0; i < streams.size(); ++i) {
    EXPECT_EQ(read(*streams[i])[0].tokens, generate(*alone, requests[i]).tokens) << "request " << i;
  }
  wait_until_idle(*engine);
  const EngineStats stats = engine->stats();
  EXPECT_GT(stats.mixed_steps, 10u);
  EXPECT_GT(10 * stats.ahead_steps, 8 * stats.steps) << "most steps";
  EXPECT_EQ(stats.free_blocks, stats.blocks);
}

// The forward pass is queued while a constraint still waits for the token before it.
TEST(Ahead, ConstrainedStepsAreQueuedToo) {
  const auto engine = make_engine({}, watched);
  GenerationRequest request = greedy({1, 2, 3}, 20);
  request.constraint = compiled(even_tokens());
  EXPECT_EQ(generate(*engine, request).tokens.size(), 20u);
  EXPECT_EQ(watch().early_steps, 19);  // all but the prompt
}

}  // namespace
}  // namespace inferno::testing
