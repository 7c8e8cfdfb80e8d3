// A request gets the same answer as when it runs alone, bit for bit: whichever requests share the step,
// however the prompt is cut, whatever is preempted or found in the cache.
#include <gtest/gtest.h>

#include <bit>
#include <map>

#include "engine/answer_divergence.h"
#include "engine/batch_variants.h"

namespace inferno::testing {
namespace {

SceneOptions scene_of(const BatchVariant& variant) {
  SceneOptions options;
  options.model = variant.model;
  options.cache = parse_cache_choice(variant.cache, "test");
  return options;
}

std::vector<Answer> alone(const BatchVariant& variant, const std::vector<GenerationRequest>& requests) {
  SceneOptions options = scene_of(variant);
  options.engine = {.max_sequences = 1, .prefix_cache = false, .plans_ahead = false};
  const auto engine = make_engine(options);
  std::vector<Answer> answers;
  for (const GenerationRequest& request : requests) answers.push_back(generate(*engine, request));
  return answers;
}

void expect_same(const Answer& found, const Answer& expected) {
  ASSERT_TRUE(found.finished.has_value()) << found.failed.value_or("");
  EXPECT_EQ(found.tokens, expected.tokens);
  EXPECT_EQ(found.finished->reason, expected.finished->reason);
  ASSERT_EQ(found.logprobs.size(), expected.logprobs.size());
  for (std::size_t i = 0; i < found.logprobs.size(); ++i) {
    EXPECT_EQ(std::bit_cast<int>(found.logprobs[i]), std::bit_cast<int>(expected.logprobs[i]))
        << "token " << i;
  }
}

class Batching : public ::testing::TestWithParam<BatchVariant> {};

TEST_P(Batching, GivesTheAnswersOfEachRequestAlone) {
  static std::map<std::string, std::pair<std::vector<GenerationRequest>, std::vector<Answer>>> cache;
  auto& [requests, expected] = cache[GetParam().model + GetParam().cache];
  if (requests.empty()) {
    requests = random_requests(200, 11);
    expected = alone(GetParam(), requests);
  }
  SceneOptions options = scene_of(GetParam());
  options.engine.max_sequences = 12;
  options.engine.max_step_tokens = options.engine.max_prompt_tokens = GetParam().chunk;
  options.engine.prefix_cache = GetParam().prefix_cache;
  options.engine.block_size = GetParam().chunk == 64 ? 8 : 32;
  if (GetParam().small_pool) options.engine.cache_bytes = cache_bytes_for(options, 288);
  const auto engine = make_engine(options);
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (const GenerationRequest& request : requests) streams.push_back(engine->submit(request));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    SCOPED_TRACE(::testing::Message()
                 << "request " << i << " with a prompt of " << requests[i].prompt.size());
    expect_same(read(*streams[i])[0], expected[i]);
    if (HasFailure()) return;
  }
  wait_until_idle(*engine);
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.free_blocks, stats.blocks);
  EXPECT_EQ(stats.preemptions > 0, GetParam().small_pool);
  EXPECT_EQ(stats.cached_tokens > 0, GetParam().prefix_cache);
}

INSTANTIATE_TEST_SUITE_P(Ways, Batching, ::testing::ValuesIn(all_variants({16, 64, 512})),
                         [](const auto& variant) { return name_of(variant.param); });
INSTANTIATE_TEST_SUITE_P(RoundedCache, Batching, ::testing::ValuesIn(all_variants({64}, "q8_0")),
                         [](const auto& variant) { return name_of(variant.param); });

}  // namespace
}  // namespace inferno::testing
