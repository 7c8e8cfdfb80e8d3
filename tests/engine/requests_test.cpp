// What one request may ask for and how it ends.
#include <gtest/gtest.h>

#include "engine/engine_scene.h"
#include "support/caught_error.h"

namespace inferno::testing {
namespace {

GenerationRequest greedy(std::vector<TokenId> prompt, int max_tokens) {
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0.0f;
  return request;
}

TEST(Requests, EndAtTheirLength) {
  const auto engine = make_engine({});
  const Answer answer = generate(*engine, greedy({1, 2, 3}, 7));
  EXPECT_EQ(answer.tokens.size(), 7u);
  EXPECT_EQ(answer.finished->reason, FinishReason::length);
  EXPECT_EQ(answer.finished->prompt_tokens, 3);
  EXPECT_EQ(answer.finished->generated_tokens, 7);
}

TEST(Requests, EndWithTheContext) {
  SceneOptions options;
  options.context = 40;
  const auto engine = make_engine(options);
  EXPECT_EQ(engine->context(), 40);
  const Answer answer = generate(*engine, greedy({1, 2, 3}, 0));
  EXPECT_EQ(answer.tokens.size(), 37u);
  EXPECT_EQ(answer.finished->reason, FinishReason::length);
}

TEST(Requests, EndAtAnyOfTheirStopTokens) {
  const auto engine = make_engine({});
  const Answer whole = generate(*engine, greedy({5, 6}, 10));
  GenerationRequest request = greedy({5, 6}, 10);
  request.stop_tokens = {-7, whole.tokens[3], 12345};
  const Answer answer = generate(*engine, request);
  const auto end = std::find(whole.tokens.begin(), whole.tokens.end(), whole.tokens[3]) + 1;
  EXPECT_EQ(answer.tokens, std::vector<TokenId>(whole.tokens.begin(), end));
  EXPECT_EQ(answer.finished->reason, FinishReason::stop);
}

}  // namespace
}  // namespace inferno::testing
