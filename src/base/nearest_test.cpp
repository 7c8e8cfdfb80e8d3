#include "base/nearest.h"

#include <gtest/gtest.h>

namespace inferno {
namespace {

const std::vector<std::string> commands_here = {"play", "plan", "list", "download", "generate"};

TEST(Nearest, NamesWhatWasMeant) {
  EXPECT_EQ(nearest("paly", commands_here), "play");
  EXPECT_EQ(nearest("donwlaod", commands_here), "download");
  EXPECT_EQ(nearest("lst", commands_here), "list");
  EXPECT_EQ(nearest("xyz", commands_here), "");
  EXPECT_EQ(nearest("", commands_here), "");
  EXPECT_EQ(nearest(std::string(1'000'000, 'x'), commands_here), "");
}

TEST(Nearest, ChoosesAFewInTheirOwnOrder) {
  EXPECT_EQ(nearest_of("plam", commands_here, 2), (std::vector<std::string>{"play", "plan"}));
  EXPECT_EQ(nearest_of("lists", commands_here, 1), (std::vector<std::string>{"list"}));
  EXPECT_EQ(nearest_of("x", commands_here, 9), commands_here);
  EXPECT_EQ(nearest_of(std::string(1'000'000, 'x'), commands_here, 1).size(), 1u);
}

}  // namespace
}  // namespace inferno
