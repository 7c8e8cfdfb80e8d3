#include "checkpoint/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/caught_error.h"

namespace inferno {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Config sample() {
  return Config({{"heads", 32.0},
                 {"zero", 0.0},
                 {"half", 0.5},
                 {"negative", -1.0},
                 {"huge", 1e300},
                 {"endless", std::numeric_limits<double>::infinity()},
                 {"tied", true},
                 {"act", std::string("silu")},
                 {"kinds", std::vector<std::string>{"full", "sliding"}},
                 {"factors", std::vector<double>{1.0, 2.5}},
                 {"nothing", std::vector<double>{}}},
                "dir/config.json", {"objects"});
}

TEST(Config, ReturnsTypedValues) {
  const Config c = sample();
  EXPECT_EQ(c.integer("heads"), 32);
  EXPECT_EQ(c.integer("zero"), 0);
  EXPECT_EQ(c.positive("heads"), 32);
  EXPECT_FLOAT_EQ(c.number("half"), 0.5f);
  EXPECT_FLOAT_EQ(c.number("negative"), -1.0f);
  EXPECT_TRUE(c.flag("tied", false));
  EXPECT_EQ(c.text("act", ""), "silu");
  EXPECT_THAT(c.texts("kinds"), ElementsAre("full", "sliding"));
  EXPECT_THAT(c.numbers("factors"), ElementsAre(1.0f, 2.5f));
}

TEST(Config, FallsBackOnlyWhenAKeyIsAbsent) {
  const Config c = sample();
  EXPECT_EQ(c.integer("absent", 7), 7);
  EXPECT_EQ(c.positive("absent", 7), 7);
  EXPECT_FLOAT_EQ(c.number("absent", 0.25f), 0.25f);
  EXPECT_TRUE(c.flag("absent", true));
  EXPECT_EQ(c.text("absent", "x"), "x");
  EXPECT_THAT(c.texts("absent"), IsEmpty());
  EXPECT_THAT(c.numbers_or_empty("absent"), IsEmpty());
  EXPECT_EQ(caught_error([&] { c.integer("half", 7); }).kind(), ErrorKind::corrupt);
  EXPECT_EQ(caught_error([&] { c.flag("heads", true); }).kind(), ErrorKind::corrupt);
}

TEST(Config, AnEmptyListHasBothTypes) {
  const Config c = sample();
  EXPECT_THAT(c.texts("nothing"), IsEmpty());
  EXPECT_THAT(c.numbers("nothing"), IsEmpty());
}

TEST(Config, RefusesIntegersOutsideTheirRange) {
  const Config c = sample();
  for (const char* key : {"half", "negative", "huge", "endless", "act", "tied", "factors"}) {
    const Error error = caught_error([&] { c.integer(key); });
    EXPECT_EQ(error.kind(), ErrorKind::corrupt) << key;
    EXPECT_THAT(error.what(), HasSubstr(key));
    EXPECT_THAT(error.what(), HasSubstr("dir/config.json"));
  }
  EXPECT_EQ(caught_error([&] { c.positive("zero"); }).kind(), ErrorKind::corrupt);
}

TEST(Config, RefusesNumbersThatDoNotFitAFloat) {
  const Config c = sample();
  EXPECT_THAT(caught_error([&] { c.number("huge"); }).what(), HasSubstr("1e+300"));
  EXPECT_EQ(caught_error([&] { c.number("endless"); }).kind(), ErrorKind::corrupt);
}

TEST(Config, NamesAMissingKey) {
  const Error error = caught_error([] { sample().integer("hidden_size"); });
  EXPECT_EQ(error.kind(), ErrorKind::corrupt);
  EXPECT_THAT(error.what(), HasSubstr("\"hidden_size\", which is missing"));
}

TEST(Config, ListsUnreadKeys) {
  const Config c = sample();
  for (const char* key : {"zero", "half", "negative", "huge", "endless", "tied", "act", "nothing"})
    c.ignore(key);
  c.integer("heads");
  c.texts("kinds");
  EXPECT_THAT(c.unread(), ElementsAre("factors", "objects"));
}

TEST(Config, ReportsListsOfOtherTypes) {
  const Config c = sample();
  EXPECT_TRUE(c.has("objects"));
  EXPECT_EQ(caught_error([&] { c.texts("objects"); }).kind(), ErrorKind::corrupt);
}

}  // namespace
}  // namespace inferno
