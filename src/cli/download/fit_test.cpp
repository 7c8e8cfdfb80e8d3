#include "cli/download/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace inferno {
namespace {

TEST(MemoryShortage, HasBothFigures) {
  const LocalMemory laptop = {.name = "memory", .device = {.free_bytes = 16'000'000'000}};
  EXPECT_THAT(memory_shortage({.weight_bytes = 65'000'000'000}, laptop),
              testing::MatchesRegex(
                  "It needs about 6[5-9]\\.[0-9] GB of memory, but this machine has only 16.0 GB free"));
  LocalMemory gpu = laptop;
  gpu.name = "GPU";
  EXPECT_THAT(memory_shortage({.weight_bytes = 65'000'000'000}, gpu),
              testing::HasSubstr(" GB of GPU memory, "));
}

TEST(MemoryShortage, IsNoneIfTheModelFitsOrNothingIsKnown) {
  const LocalMemory laptop = {.name = "memory", .device = {.free_bytes = 16'000'000'000}};
  EXPECT_EQ(memory_shortage({.weight_bytes = 5'000'000'000}, laptop), "");
  EXPECT_EQ(memory_shortage({.weight_bytes = 0}, laptop), "");
  EXPECT_EQ(memory_shortage({.weight_bytes = 65'000'000'000}, {}), "");
}

}  // namespace
}  // namespace inferno
