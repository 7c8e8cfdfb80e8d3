#include "cli/bench/load/load_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace inferno::load {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

RequestRecord finished(double start, double first, double end, int tokens) {
  return {.outcome = Outcome::finished,
          .input_tokens = 10,
          .output_tokens = tokens,
          .start = start,
          .first_token = first,
          .end = end,
          .gaps = std::vector<float>(static_cast<std::size_t>(tokens - 1),
                                     static_cast<float>((end - first) / (tokens - 1))),
          .problem = {}};
}

std::vector<RequestRecord> scene() {
  return {finished(0.0, 0.1, 1.1, 11),
          finished(0.5, 0.8, 2.0, 13),
          {.outcome = Outcome::refused, .start = 0.6, .end = 0.602, .gaps = {}, .problem = "429"},
          {.outcome = Outcome::failed, .start = 1.5, .end = 1.6, .gaps = {}, .problem = "connection reset"}};
}

TEST(LoadStatistics, InterpolatesPercentilesAsNumpyDoes) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  const Spread spread = spread_of(values);
  EXPECT_NEAR(spread.mean, 50.5, 1e-9);
  EXPECT_NEAR(spread.median, 50.5, 1e-9);
  EXPECT_NEAR(spread.p95, 95.05, 1e-9);
  EXPECT_NEAR(spread.p99, 99.01, 1e-9);
  EXPECT_NEAR(spread.deviation, 28.86607, 1e-4);
  EXPECT_EQ(spread_of({}).p99, 0.0);
  EXPECT_EQ(spread_of({3.0}).p99, 3.0);
}

TEST(LoadStatistics, CountsLatenciesOfFinishedRequestsOnly) {
  const LoadSummary summary = summarize(scene());
  EXPECT_EQ(summary.finished, 2);
  EXPECT_EQ(summary.refused, 1);
  EXPECT_EQ(summary.failed, 1);
  EXPECT_EQ(summary.input_tokens, 20);
  EXPECT_EQ(summary.output_tokens, 24);
  EXPECT_EQ(summary.peak_streams, 3);
  EXPECT_NEAR(summary.seconds, 2.0, 1e-9);
  EXPECT_NEAR(summary.output_per_second(), 12.0, 1e-9);
  EXPECT_NEAR(summary.first_token.mean, 200.0, 1e-6);
  EXPECT_NEAR(summary.per_token.median, 100.0, 1e-3);
  EXPECT_NEAR(summary.gap.p99, 100.0, 1e-3);
  EXPECT_NEAR(summary.refusal.p99, 2.0, 1e-6);
  EXPECT_EQ(summary.first_problem, "connection reset");
}

TEST(LoadStatistics, PrintsTheBlockOfVllm) {
  const std::string text = as_text(summarize(scene()));
  EXPECT_THAT(text, AllOf(HasSubstr("============ Serving Benchmark Result ============\n"),
                          HasSubstr("Successful requests:                     2         \n"),
                          HasSubstr("Output token throughput (tok/s):         12.00     \n"),
                          HasSubstr("---------------Time to First Token----------------\n"),
                          HasSubstr("P99 ITL (ms):"), HasSubstr("first failure: connection reset\n")));
  EXPECT_THAT(as_text(summarize({})), Not(HasSubstr("nan")));
}

TEST(LoadStatistics, NamesFiguresInJsonAsVllmDoes) {
  const auto json = as_json(summarize(scene()));
  EXPECT_EQ(json.at("completed"), 2);
  EXPECT_EQ(json.at("total_output_tokens"), 24);
  EXPECT_NEAR(json.at("mean_ttft_ms").get<double>(), 200.0, 1e-6);
  EXPECT_EQ(json.at("first_failure"), "connection reset");
}

TEST(LoadStatistics, ShowsWhatAnEngineDid) {
  LoadSummary summary = summarize(scene());
  EXPECT_THAT(as_text(summary), Not(HasSubstr("Engine")));
  EXPECT_FALSE(as_json(summary).contains("engine"));
  summary.engine = {.decode_steps = 7, .mixed_steps = 2, .prompt_steps = 1, .device_idle_share = 0.25};
  EXPECT_THAT(as_text(summary), AllOf(HasSubstr("Steps (decode / mixed / prompt):         7 / 2 / 1\n"),
                                      HasSubstr("Device idle (%):                         25.00     \n")));
  EXPECT_EQ(as_json(summary).at("engine").at("mixed_steps"), 2);
}

TEST(LoadStatistics, PlotsEveryLoad) {
  LoadSummary one = summarize(scene()), two = one;
  one.level = 1.0;
  two.level = 8.0;
  EXPECT_THAT(as_svg("a server", "concurrent requests", std::vector{one, two}),
              AllOf(HasSubstr("Throughput"), HasSubstr("Inter-token Latency"), HasSubstr(">ms<"),
                    HasSubstr("concurrent requests"), Not(HasSubstr("nan"))));
}

}  // namespace
}  // namespace inferno::load
