#include "cli/bench/load/load_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace inferno::load {
namespace {

// Answers each request with `tokens` tokens, one in each wait(), and refuses those numbered below `refused`.
class FakeTarget final : public Target {
 public:
  FakeTarget(int tokens, std::size_t refused) : tokens_(tokens), refused_(refused) {}

  void start(std::size_t number, Records& records) override {
    if (number < refused_) return records.end(number, Outcome::refused, "full");
    left_[number] = tokens_;
    most_at_once = std::max(most_at_once, left_.size());
    order.push_back(number);
  }
  void wait(double seconds, Records& records) override {
    if (left_.empty()) return std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    const double time = records.now();
    for (auto& [number, left] : left_) {
      records.add_text(number, time);
      ++records.of(number).output_tokens;
      if (--left == 0) records.end(number, Outcome::finished);
    }
    std::erase_if(left_, [](const auto& one) { return one.second == 0; });
  }

  std::size_t most_at_once = 0;
  std::vector<std::size_t> order;

 private:
  int tokens_;
  std::size_t refused_;
  std::unordered_map<std::size_t, int> left_;
};

TEST(LoadRun, KeepsAsManyRequestsOpenAsItMay) {
  const std::vector<PlannedRequest> plan = closed_loop(10, 5, 3);
  FakeTarget target(3, 0);
  const LoadResult result = run_load(target, {.plan = plan, .max_streams = 4});
  EXPECT_FALSE(result.was_interrupted);
  ASSERT_EQ(result.records.size(), 10u);
  EXPECT_EQ(target.most_at_once, 4u);
  EXPECT_TRUE(std::ranges::is_sorted(target.order));
  for (const RequestRecord& record : result.records) {
    EXPECT_EQ(record.outcome, Outcome::finished);
    EXPECT_EQ(record.input_tokens, 5);
    EXPECT_EQ(record.output_tokens, 3);
    EXPECT_EQ(record.gaps.size(), 2u) << "between three tokens";
    EXPECT_GE(record.first_token, record.start);
    EXPECT_GE(record.end, record.first_token);
  }
}

TEST(LoadRun, StartsAllAtOnceWithoutALimit) {
  const std::vector<PlannedRequest> plan = closed_loop(10, 5, 3);
  FakeTarget target(3, 0);
  run_load(target, {.plan = plan});
  EXPECT_EQ(target.most_at_once, 10u);
}

TEST(LoadRun, StartsNoRequestBeforeItsTime) {
  std::vector<PlannedRequest> plan = closed_loop(3, 5, 1);
  plan[1].at = 0.02;
  plan[2].at = 0.05;
  FakeTarget target(1, 0);
  const LoadResult result = run_load(target, {.plan = plan});
  ASSERT_EQ(result.records.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_GE(result.records[i].start, plan[i].at);
}

TEST(LoadRun, GoesOnAfterARefusal) {
  const std::vector<PlannedRequest> plan = closed_loop(5, 5, 2);
  FakeTarget target(2, 2);
  const LoadResult result = run_load(target, {.plan = plan, .max_streams = 1});
  const auto count = [&](Outcome outcome) {
    return std::ranges::count(result.records, outcome, &RequestRecord::outcome);
  };
  EXPECT_EQ(count(Outcome::refused), 2);
  EXPECT_EQ(count(Outcome::finished), 3);
}

}  // namespace
}  // namespace inferno::load
