// More requests than the cache holds, clients that give up, forks and greedy neighbours: everyone still gets
// the answer of a quiet machine.
#include <gtest/gtest.h>

#include <chrono>

#include "engine/engine_scene.h"
#include "engine/watched_backend.h"
#include "support/caught_error.h"

namespace inferno::testing {
namespace {

using Clock = std::chrono::steady_clock;

SceneOptions crowded(const std::string& cache = "auto") {
  SceneOptions options;
  options.cache = parse_cache_choice(cache, "test");
  options.engine.max_sequences = 16;
  options.engine.block_size = 8;
  options.engine.cache_bytes = cache_bytes_for(options, 64 * options.engine.block_size);
  return options;
}

GenerationRequest seeded(Random& random, int prompt, int tokens) {
  GenerationRequest request;
  request.prompt = random_prompt(random, prompt);
  request.max_tokens = tokens;
  request.sampling.temperature = random.below(2) == 0 ? 0.0f : 1.0f;
  request.sampling.seed = random.word();
  return request;
}

std::unique_ptr<Engine> quiet_engine(const std::string& cache = "auto") {
  SceneOptions options;
  options.cache = parse_cache_choice(cache, "test");
  options.engine = {.max_sequences = 1, .prefix_cache = false};
  return make_engine(options);
}

TEST(Contention, EveryRequestFinishesAsItWouldAloneOrIsRefusedAtOnce) {
  const auto engine = make_engine(crowded());
  const auto quiet = quiet_engine();
  Random random(21);
  std::vector<GenerationRequest> requests;
  std::vector<std::shared_ptr<TokenStream>> streams;
  int refused = 0;
  for (int i = 0; i < 128; ++i) {
    const bool hopeless = i % 16 == 15;
    GenerationRequest request = seeded(random, hopeless ? 300 : 1 + random.below(150), 1 + random.below(60));
    if (hopeless) {
      EXPECT_EQ(caught_error([&] { engine->submit(request); }).kind(), ErrorKind::invalid_request);
      ++refused;
      continue;
    }
    streams.push_back(engine->submit(request));
    requests.push_back(std::move(request));
    if (random.below(5) == 0) {
      streams[static_cast<std::size_t>(random.below(static_cast<int>(streams.size())))]->cancel();
    }
  }
  EXPECT_EQ(refused, 8);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    SCOPED_TRACE(::testing::Message() << "request " << i);
    const Answer found = read(*streams[i])[0];
    ASSERT_TRUE(found.finished.has_value()) << found.failed.value_or("");
    const Answer expected = generate(*quiet, requests[i]);
    if (found.finished->reason == FinishReason::cancelled) {
      ASSERT_LE(found.tokens.size(), expected.tokens.size());
      EXPECT_TRUE(std::equal(found.tokens.begin(), found.tokens.end(), expected.tokens.begin()));
    } else {
      EXPECT_EQ(found.tokens, expected.tokens);
    }
  }
  wait_until_idle(*engine);
  EXPECT_GT(engine->stats().preemptions, 0u);
  EXPECT_EQ(engine->stats().free_blocks, engine->stats().blocks);
}

TEST(Contention, WhatCanNeverFitIsRefusedQuicklyAndDelaysNobody) {
  const auto engine = make_engine(crowded());
  Random random(22);
  const auto running = engine->submit(seeded(random, 20, 200));
  ASSERT_TRUE(running->next(std::chrono::seconds(10)).has_value());
  const auto start = Clock::now();
  const Error error = caught_error([&] { engine->submit(seeded(random, 400, 10)); });
  EXPECT_LT(Clock::now() - start, std::chrono::milliseconds(100));
  EXPECT_EQ(error.kind(), ErrorKind::invalid_request);
  EXPECT_EQ(engine->stats().waiting, 0);
  EXPECT_TRUE(read(*running)[0].finished.has_value());
}

class Forks : public ::testing::TestWithParam<std::string> {};  // a type of KV cache

TEST_P(Forks, UnderPressureWriteWhatTheirSeedsWriteAlone) {
  const auto engine = make_engine(crowded(GetParam()));
  const auto quiet = quiet_engine(GetParam());
  Random random(23);
  std::vector<GenerationRequest> requests;
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int i = 0; i < 24; ++i) {
    GenerationRequest request = seeded(random, 30 + random.below(60), 20 + random.below(30));
    request.sampling.temperature = 1.0f;
    request.sampling.seed = static_cast<std::uint64_t>(1000 * i);
    request.choices = 1 + random.below(4);
    streams.push_back(engine->submit(request));
    requests.push_back(std::move(request));
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::vector<Answer> found = read(*streams[i], requests[i].choices);
    for (int choice = 0; choice < requests[i].choices; ++choice) {
      GenerationRequest one = requests[i];
      one.choices = 1;
      one.sampling.seed = *requests[i].sampling.seed + static_cast<std::uint64_t>(choice);
      EXPECT_EQ(found[static_cast<std::size_t>(choice)].tokens, generate(*quiet, one).tokens)
          << "request " << i << ", choice " << choice;
    }
  }
  wait_until_idle(*engine);
  EXPECT_GT(engine->stats().preemptions, 0u);
  EXPECT_EQ(engine->stats().free_blocks, engine->stats().blocks);
}

INSTANTIATE_TEST_SUITE_P(Caches, Forks, ::testing::Values("auto", "q8_0", "fp8"),
                         [](const auto& cache) { return cache.param; });

TEST(Contention, AClientWithFiveHundredRequestsDoesNotHoldUpTheOthers) {
  SceneOptions options = crowded();
  options.engine.max_sequences = 8;
  const auto engine = make_engine(options, watched);
  watch().step_milliseconds = 2;  // so that the others have asked before the first is served
  Random random(24);
  std::vector<std::shared_ptr<TokenStream>> greedy, modest;
  for (int i = 0; i < 500; ++i) {
    GenerationRequest request = seeded(random, 10, 10);
    request.client = "greedy";
    greedy.push_back(engine->submit(std::move(request)));
  }
  for (int i = 0; i < 10; ++i) {
    GenerationRequest request = seeded(random, 10, 10);
    request.client = "modest " + std::to_string(i);
    modest.push_back(engine->submit(std::move(request)));
  }
  for (const auto& stream : modest) EXPECT_TRUE(read(*stream)[0].finished.has_value());
  // Some earlier requests may have begun, but the modest clients overtook most of those that waited.
  EXPECT_GT(engine->stats().waiting, 250);
  for (const auto& stream : greedy) stream->cancel();
  wait_until_idle(*engine);
}

}  // namespace
}  // namespace inferno::testing
