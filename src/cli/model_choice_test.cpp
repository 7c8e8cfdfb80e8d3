#include "cli/model_choice.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace inferno {
namespace {

const std::vector<FoundModel> two = {{"org/one", "/m/one", 1'234'567}, {"日本", "/m/two", 20'000'000'000}};

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
  EXPECT_EQ(model_list(two), "   1  org/one     1.2 MiB\n   2  日本       18.6 GiB\n");
  EXPECT_EQ(model_list({{"a\x1b[2J", "/m", 5}}), "   1  a\\x1b[2J         5 B\n");
}

}  // namespace
}  // namespace inferno
