#include "cli/bench/load/load_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"

namespace inferno::load {
namespace {

using ::testing::HasSubstr;

auto words_in(const std::string& text) {
  return 1 + std::ranges::count(text, ' ');
}

TEST(LoadPlan, SpreadsArrivalsLikeAPoissonProcess) {
  std::vector<PlannedRequest> plan = closed_loop(10000, 8, 4), again = plan;
  spread_arrivals(plan, 50.0, 1);
  spread_arrivals(again, 50.0, 1);
  EXPECT_EQ(plan.front().at, 0.0);
  EXPECT_NEAR(plan.back().at, 200.0, 8.0);
  EXPECT_EQ(plan.back().at, again.back().at);
  // Of exponential gaps, 1/e exceed the mean.
  int longer = 0;
  for (std::size_t i = 1; i < plan.size(); ++i) longer += plan[i].at - plan[i - 1].at > 0.02;
  EXPECT_NEAR(longer, 3679, 150);
}

TEST(LoadPlan, ReadsAzuresTrace) {
  const auto plan = parse_trace(
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 23:59:59.5000000,374,44\r\n"
      "2023-11-17 00:00:00.5000000,396,109\r\n",
      10, 2.0);
  ASSERT_EQ(plan.size(), 2);
  EXPECT_EQ(plan[0].at, 0.0);
  EXPECT_NEAR(plan[1].at, 0.5, 1e-6);
  EXPECT_EQ(plan[1].input_tokens, 396);
  EXPECT_EQ(plan[1].output_tokens, 109);
}

TEST(LoadPlan, ReadsMooncakesTraceWithItsSharedBlocks) {
  const auto plan = parse_trace(
      R"({"timestamp": 1000, "input_length": 1000, "output_length": 5, "hash_ids": [0, 1]}
{"timestamp": 4000, "input_length": 1000, "output_length": 0, "hash_ids": [0, 2]}
{"timestamp": 9000, "input_length": 7, "output_length": 3})",
      2, 1.0);
  ASSERT_EQ(plan.size(), 2);
  EXPECT_NEAR(plan[1].at, 3.0, 1e-9);
  EXPECT_EQ(plan[1].output_tokens, 1);
  const PromptWriter writer(1);
  const std::string first = writer.prompt(0, plan[0]), second = writer.prompt(1, plan[1]);
  EXPECT_EQ(words_in(first), 1000);
  const auto differ = std::ranges::mismatch(first, second);
  EXPECT_NEAR(static_cast<double>(words_in(std::string(first.begin(), differ.in1))), 513.0, 3.0);
}

TEST(LoadPlan, NamesTheLineOfAMalformedTrace) {
  for (const char* text : {"TIMESTAMP\n2023-11-16 18:17:03,x,1\n", "\n{\"timestamp\": 0}\n", "\nhello\n"}) {
    try {
      parse_trace(text, 10, 1.0);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("line 2: "));
    }
  }
  EXPECT_THROW(parse_trace("", 10, 1.0), Error);
}

TEST(PromptWriter, NeverRepeatsAPromptAndRepeatsATest) {
  const PlannedRequest request = closed_loop(1, 32, 1)[0];
  std::set<std::string> seen;
  for (std::uint64_t i = 0; i < 1000; ++i) seen.insert(PromptWriter(3).prompt(i, request));
  EXPECT_EQ(seen.size(), 1000);
  EXPECT_EQ(PromptWriter(3).prompt(5, request), PromptWriter(3).prompt(5, request));
  EXPECT_NE(PromptWriter(3).prompt(5, request), PromptWriter(4).prompt(5, request));
}

TEST(PromptWriter, CountsTokensAsTheServerDoes) {
  PromptWriter writer(1);
  writer.calibrate(/*words1=*/10, /*tokens1=*/25, /*words2=*/20, /*tokens2=*/40);
  EXPECT_EQ(words_in(writer.prompt(0, closed_loop(1, 160, 1)[0])), 100);
  EXPECT_EQ(words_in(writer.prompt(0, closed_loop(1, 1, 1)[0])), 1);
}

TEST(PromptWriter, BeginsPromptsWithASharedPrefix) {
  const PromptWriter writer(1, /*shared_tokens=*/20);
  const PlannedRequest request = closed_loop(1, 30, 1)[0];
  const std::string one = writer.prompt(0, request), two = writer.prompt(1, request);
  const auto differ = std::ranges::mismatch(one, two);
  EXPECT_GE(words_in(std::string(one.begin(), differ.in1)), 20);
  EXPECT_NE(one, two);
}

TEST(PromptWriter, SharesTokensWhereItSharesWords) {
  const PromptWriter writer(1, /*shared_tokens=*/20);
  const PlannedRequest request = closed_loop(1, 30, 1)[0];
  const auto one = writer.tokens(0, request, 1000), two = writer.tokens(1, request, 1000);
  EXPECT_EQ(one.size(), 30u);
  EXPECT_EQ(std::ranges::mismatch(one, two).in1 - one.begin(), 20);
  EXPECT_EQ(writer.tokens(0, request, 1000), one);
  for (const TokenId token : one) EXPECT_TRUE(token >= 0 && token < 1000);
}

}  // namespace
}  // namespace inferno::load
