#include "cli/model_choice.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace inferno {
namespace {

const std::vector<FoundModel> two = {{.name = "org/one", .path = "/m/one", .bytes = 1'234'567},
                                     {.name = "日本", .path = "/m/two", .bytes = 20'000'000'000}};

TEST(ModelChoice, TakesTheOnlyModelThereIs) {
  EXPECT_EQ(choose_model("", {two[0]}).path, "/m/one");
  EXPECT_EQ(choose_model("one", two).path, "/m/one");
}

TEST(ModelChoice, TakesTheBuiltInModelWhenNoneIsNamed) {
  const std::vector<FoundModel> none = models_here(Environment({}, std::nullopt));
  ASSERT_EQ(none.size(), 1u);
  EXPECT_EQ(choose_model("", none).name, "builtin");
  EXPECT_TRUE(choose_model("builtin", none).path.empty());
  EXPECT_GT(none[0].bytes, 0u);
  EXPECT_EQ(choose_model("", {two[0], none[0]}).name, "builtin");
  EXPECT_EQ(choose_model("one", {two[0], none[0]}).name, "one");
}

TEST(ModelChoice, AsksForANameWhenThereAreSeveral) {
  try {
    choose_model("", two);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_request);
    EXPECT_EQ(error.advice().why, "found are: org/one, 日本");
  }
}

TEST(ModelChoice, SaysWhereItLookedWhenThereIsNone) {
  try {
    choose_model("", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::not_found);
    EXPECT_NE(error.advice().next.find("INFERNO_MODELS"), std::string::npos);
  }
}

TEST(ModelChoice, ListsModelsInColumns) {
  EXPECT_EQ(model_list(two), "   1  org/one     1.2 MB\n   2  日本       20.0 GB\n");
  EXPECT_EQ(model_list({{.name = "a\x1b[2J", .path = "/m", .bytes = 5}}), "   1  a\\x1b[2J     0.0 kB\n");
}

}  // namespace
}  // namespace inferno
