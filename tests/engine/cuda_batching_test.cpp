// On a GPU a batch gives each request the answer that it gets alone, up to rounding: whichever requests share
// the step, however the prompt is cut, whatever is preempted, cancelled or found in the cache.
#include <gtest/gtest.h>

#include <bit>
#include <map>

#include "engine/answer_divergence.h"
#include "engine/batch_variants.h"

namespace inferno::testing {
namespace {

// The distance of two distributions over a hundred tokens whose logits agree as closely as parity requires.
double limit() {
  return 1.5 * model_backend().parity;
}
// Another expert makes another distribution.
double far_share(const std::string& model) {
  return model == "windows" ? model_backend().misrouted : 0.0;
}

SceneOptions scene(const std::string& model) {
  SceneOptions options;
  options.model = model;
  options.engine.max_logprobs = scene_vocab;
  return options;
}

std::unique_ptr<Engine> quiet_engine(const std::string& model,
                                     std::unique_ptr<Backend> (*backend)(int) = model_backend().make) {
  SceneOptions options = scene(model);
  options.engine.max_sequences = 1;
  options.engine.prefix_cache = false;
  options.backend = backend;
  return make_engine(options);
}

struct Expected {
  std::vector<GenerationRequest> requests;
  std::vector<FullAnswer> answers;
};

// Two hundred requests and the answer that each one gets when it runs alone.
const Expected& expected_of(const std::string& model) {
  static std::map<std::string, Expected> all;
  Expected& out = all[model];
  if (!out.requests.empty()) return out;
  out.requests = random_requests(200, 11);
  const auto engine = quiet_engine(model);
  for (const GenerationRequest& request : out.requests) {
    out.answers.push_back(generate_fully(*engine, request));
  }
  return out;
}

class CudaBatching : public ::testing::TestWithParam<BatchVariant> {};

TEST_P(CudaBatching, GivesNearlyTheAnswersOfEachRequestAlone) {
  const Expected& expected = expected_of(GetParam().model);
  SceneOptions options = scene(GetParam().model);
  options.engine.max_sequences = 12;
  options.engine.max_step_tokens = options.engine.max_prompt_tokens = GetParam().chunk;
  options.engine.prefix_cache = GetParam().prefix_cache;
  options.engine.block_size = GetParam().chunk == 16 ? 8 : 32;
  if (GetParam().small_pool) options.engine.cache_bytes = cache_bytes_for(options, 288);
  const auto engine = make_engine(options);
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (const GenerationRequest& request : expected.requests) {
    streams.push_back(engine->submit(asking_for_everything(request)));
  }
  DivergenceCheck nearness(limit());
  for (std::size_t i = 0; i < streams.size(); ++i) {
    SCOPED_TRACE(::testing::Message() << "request " << i);
    nearness.add(expected.requests[i], read_fully(*streams[i])[0], expected.answers[i]);
    if (HasFatalFailure()) return;
  }
  nearness.expect(far_share(GetParam().model));
  wait_until_idle(*engine);
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.free_blocks, stats.blocks);
  EXPECT_EQ(stats.preemptions > 0, GetParam().small_pool);
  EXPECT_EQ(stats.cached_tokens > 0, GetParam().prefix_cache);
}

INSTANTIATE_TEST_SUITE_P(Ways, CudaBatching, ::testing::ValuesIn(all_variants({16, 512})),
                         [](const auto& variant) { return name_of(variant.param); });

class CudaAnswers : public ::testing::TestWithParam<std::string> {};

TEST_P(CudaAnswers, AreNearlyThoseOfTheCpu) {
  const Expected& expected = expected_of(GetParam());
  const auto engine = quiet_engine(GetParam(), make_cpu_backend);
  DivergenceCheck nearness(limit());
  for (std::size_t i = 0; i < expected.requests.size(); ++i) {
    nearness.add(expected.requests[i], generate_fully(*engine, expected.requests[i]), expected.answers[i]);
  }
  nearness.expect(far_share(GetParam()));
}

TEST_P(CudaAnswers, AreTheSameBitsWhenAskedForAgain) {
  const Expected& expected = expected_of(GetParam());
  const auto engine = quiet_engine(GetParam());
  for (std::size_t i = 0; i < 60; ++i) {
    const FullAnswer again = generate_fully(*engine, expected.requests[i]);
    ASSERT_EQ(again.tokens.size(), expected.answers[i].tokens.size()) << "request " << i;
    for (std::size_t t = 0; t < again.tokens.size(); ++t) {
      EXPECT_EQ(again.tokens[t].token, expected.answers[i].tokens[t].token);
      EXPECT_EQ(again.tokens[t].logprobs, expected.answers[i].tokens[t].logprobs) << "request " << i;
    }
  }
}

SceneOptions crowded(const std::string& model) {
  SceneOptions options = scene(model);
  options.engine.max_sequences = 16;
  options.engine.block_size = 8;
  options.engine.cache_bytes = cache_bytes_for(options, 64 * options.engine.block_size);
  return options;
}

TEST_P(CudaAnswers, SurviveACrowdThatCancels) {
  const Expected& expected = expected_of(GetParam());
  const auto engine = make_engine(crowded(GetParam()));
  Random random(21);
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (const GenerationRequest& request : expected.requests) {
    streams.push_back(engine->submit(asking_for_everything(request)));
    if (random.below(5) == 0) {
      streams[static_cast<std::size_t>(random.below(static_cast<int>(streams.size())))]->cancel();
    }
  }
  DivergenceCheck nearness(limit());
  for (std::size_t i = 0; i < streams.size(); ++i) {
    SCOPED_TRACE(::testing::Message() << "request " << i);
    nearness.add(expected.requests[i], read_fully(*streams[i])[0], expected.answers[i]);
  }
  nearness.expect(far_share(GetParam()));
  wait_until_idle(*engine);
  EXPECT_GT(engine->stats().preemptions, 0u);
  EXPECT_EQ(engine->stats().free_blocks, engine->stats().blocks);
}

TEST_P(CudaAnswers, OfForksAreThoseOfTheirSeedsAlone) {
  const auto engine = make_engine(crowded(GetParam()));
  const auto quiet = quiet_engine(GetParam());
  Random random(23);
  std::vector<GenerationRequest> requests;
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int i = 0; i < 24; ++i) {
    GenerationRequest request;
    request.prompt = random_prompt(random, 30 + random.below(60));
    request.max_tokens = 10 + random.below(20);
    request.sampling.temperature = 1.0f;
    request.sampling.seed = static_cast<std::uint64_t>(1000 * i);
    request.choices = 1 + random.below(4);
    streams.push_back(engine->submit(asking_for_everything(request)));
    requests.push_back(std::move(request));
  }
  DivergenceCheck nearness(limit());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::vector<FullAnswer> found = read_fully(*streams[i], requests[i].choices);
    for (int choice = 0; choice < requests[i].choices; ++choice) {
      GenerationRequest one = requests[i];
      one.choices = 1;
      one.sampling.seed = *requests[i].sampling.seed + static_cast<std::uint64_t>(choice);
      nearness.add(one, found[static_cast<std::size_t>(choice)], generate_fully(*quiet, one));
    }
  }
  nearness.expect(far_share(GetParam()));
  wait_until_idle(*engine);
  EXPECT_EQ(engine->stats().free_blocks, engine->stats().blocks);
}

INSTANTIATE_TEST_SUITE_P(Models, CudaAnswers, ::testing::Values("plain", "windows"),
                         [](const auto& model) { return model.param; });

}  // namespace
}  // namespace inferno::testing
