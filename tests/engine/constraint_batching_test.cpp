// A constrained request gets the same answer as alone: whichever requests share the step, whatever is
// preempted, forked, found in the cache or queued ahead.
#include <gtest/gtest.h>

#include <bit>
#include <map>

#include "engine/answer_divergence.h"
#include "engine/batch_variants.h"
#include "engine/fake_constraints.h"

namespace inferno::testing {
namespace {

FakeRules rules_number(int index) {
  if (index == 0) return even_tokens();
  if (index == 1) return climbing_tokens();
  return exactly({3, 99, 31, 32, 64, 0, 7, 7, 50, 12});
}

// Two of three have a constraint.
std::vector<GenerationRequest> mixed_requests(int count, std::uint64_t seed) {
  std::vector<GenerationRequest> requests = random_requests(count, seed);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (i % 3 != 0) requests[i].constraint = compiled(rules_number(static_cast<int>(i / 3) % 3));
    if (i % 5 == 0) requests[i].min_tokens = 4;
  }
  return requests;
}

std::vector<Answer> alone(const std::string& model, const std::vector<GenerationRequest>& requests) {
  SceneOptions options;
  options.model = model;
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

class ConstrainedBatching : public ::testing::TestWithParam<BatchVariant> {};

TEST_P(ConstrainedBatching, GivesTheAnswersOfEachRequestAlone) {
  static std::map<std::string, std::pair<std::vector<GenerationRequest>, std::vector<Answer>>> cache;
  auto& [requests, expected] = cache[GetParam().model];
  if (requests.empty()) {
    requests = mixed_requests(120, 17);
    expected = alone(GetParam().model, requests);
  }
  for (const bool ahead : {false, true}) {
    SceneOptions options;
    options.model = GetParam().model;
    options.engine.max_sequences = 12;
    options.engine.max_step_tokens = options.engine.max_prompt_tokens = GetParam().chunk;
    options.engine.prefix_cache = GetParam().prefix_cache;
    options.engine.plans_ahead = ahead;
    if (GetParam().small_pool) options.engine.cache_bytes = cache_bytes_for(options, 288);
    const auto engine = make_engine(options);
    std::vector<std::shared_ptr<TokenStream>> streams;
    for (const GenerationRequest& request : requests) streams.push_back(engine->submit(request));
    for (std::size_t i = 0; i < requests.size(); ++i) {
      SCOPED_TRACE(::testing::Message() << "request " << i << (ahead ? ", ahead" : ""));
      expect_same(read(*streams[i])[0], expected[i]);
      if (HasFailure()) return;
    }
    wait_until_idle(*engine);
    const EngineStats stats = engine->stats();
    EXPECT_EQ(stats.free_blocks, stats.blocks);
    EXPECT_EQ(stats.preemptions > 0, GetParam().small_pool);
    EXPECT_EQ(stats.cached_tokens > 0, GetParam().prefix_cache);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, ConstrainedBatching, ::testing::ValuesIn(all_variants({64})),
                         [](const auto& variant) { return name_of(variant.param); });

TEST(ConstrainedChoices, WriteWhatTheirSeedsWriteAlone) {
  SceneOptions crowded;
  crowded.engine.block_size = 8;
  crowded.engine.cache_bytes = cache_bytes_for(crowded, 40 * crowded.engine.block_size);
  const auto engine = make_engine(crowded);
  Random random(23);
  std::vector<GenerationRequest> requests;
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int i = 0; i < 12; ++i) {
    GenerationRequest request;
    request.prompt = random_prompt(random, 30 + random.below(60));
    request.max_tokens = 20 + random.below(20);
    request.sampling.seed = static_cast<std::uint64_t>(1000 * i);
    request.choices = 1 + random.below(4);
    request.constraint = compiled(rules_number(i % 3));
    streams.push_back(engine->submit(request));
    requests.push_back(std::move(request));
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::vector<Answer> found = read(*streams[i], requests[i].choices);
    for (int choice = 0; choice < requests[i].choices; ++choice) {
      GenerationRequest one = requests[i];
      one.choices = 1;
      one.sampling.seed = *requests[i].sampling.seed + static_cast<std::uint64_t>(choice);
      EXPECT_EQ(found[static_cast<std::size_t>(choice)].tokens, alone("plain", {one})[0].tokens)
          << "request " << i << ", choice " << choice;
    }
  }
  wait_until_idle(*engine);
  EXPECT_GT(engine->stats().preemptions, 0u);
}

}  // namespace
}  // namespace inferno::testing
