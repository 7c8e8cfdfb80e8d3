#include "cli/play/model_menu.h"

#include <gtest/gtest.h>

#include <vector>

namespace inferno::play {
namespace {

TEST(ModelMenu, ListsModelsInColumns) {
  const std::vector<FoundModel> two = {{.name = "org/one", .location = "/m/one", .bytes = 1'234'567},
                                       {.name = "日本", .location = "/m/two", .bytes = 20'000'000'000}};
  EXPECT_EQ(model_menu(two), "   1  org/one     1.2 MB\n   2  日本       20.0 GB\n");
  const std::vector<FoundModel> hostile = {{.name = "a\x1b[2J", .location = "/m", .bytes = 5}};
  EXPECT_EQ(model_menu(hostile), "   1  a\\x1b[2J        5 B\n");
}

TEST(ModelMenu, UnderstandsANumberOrAName) {
  const std::vector<FoundModel> two = {{.name = "one", .location = "/m/one"},
                                       {.name = "two", .location = "/m/two"}};
  EXPECT_EQ(choose_from_menu("2", two), &two[1]);
  EXPECT_EQ(choose_from_menu(" one ", two), &two[0]);
  for (const char* answer : {"0", "3", "-1", "", "three", "1x"})
    EXPECT_EQ(choose_from_menu(answer, two), nullptr);
}

}  // namespace
}  // namespace inferno::play
