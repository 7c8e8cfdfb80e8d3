#include "cli/bench/load/load_levels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"

namespace inferno::load {
namespace {

TEST(LoadLevels, OfAClosedLoopHaveALimitOfStreams) {
  const auto found = levels({.concurrency = {1, 16}}, 1);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].plan.size(), 8u);
  EXPECT_EQ(found[1].plan.size(), 64u);
  EXPECT_EQ(found[1].max_streams, 16);
  EXPECT_EQ(found[1].name, "concurrency 16");
}

TEST(LoadLevels, OfARateArriveOneAfterTheOther) {
  const auto found = levels({.rates = {4.0}}, 1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].plan.size(), 120u);
  EXPECT_EQ(found[0].max_streams, 0);
  EXPECT_NEAR(found[0].plan.back().at, 30.0, 12.0);
}

TEST(LoadLevels, OfAnInfiniteRateArriveAtOnce) {
  const auto found = levels({.rates = {std::numeric_limits<double>::infinity()}, .requests = 30}, 1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].plan.size(), 30u);
  EXPECT_EQ(found[0].plan.back().at, 0.0);
  EXPECT_EQ(found[0].max_streams, 0);
  EXPECT_EQ(found[0].value, 30.0);
}

TEST(LoadLevels, LeaveOutRequestsBeyondTheContext) {
  std::vector<Level> found = levels({.requests = 3, .input_tokens = 100, .output_tokens = 20}, 1);
  found[0].plan[1].input_tokens = 101;
  leave_out_long(found, 120);
  EXPECT_EQ(found[0].plan.size(), 2u);
  EXPECT_THROW(leave_out_long(found, 119), Error);
}

}  // namespace
}  // namespace inferno::load
