#include "cli/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace inferno {
namespace {

std::string cache_of(Environment::Values values, std::optional<std::string> home = std::nullopt) {
  const auto cache = Environment(std::move(values), std::move(home)).hub_cache();
  return cache ? cache->path.string() + " by " + cache->said_by : "none";
}

TEST(Environment, FindsTheCacheWhereHuggingFaceDoes) {
  EXPECT_EQ(cache_of({{"HOME", "/h"}}), "/h/.cache/huggingface/hub by default");
  EXPECT_EQ(cache_of({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/x"}}), "/x/huggingface/hub by XDG_CACHE_HOME");
  EXPECT_EQ(cache_of({{"XDG_CACHE_HOME", "/x"}, {"HF_HOME", "/f"}}), "/f/hub by HF_HOME");
  EXPECT_EQ(cache_of({{"HF_HOME", "/f"}, {"HUGGINGFACE_HUB_CACHE", "/o"}}), "/o by HUGGINGFACE_HUB_CACHE");
  EXPECT_EQ(cache_of({{"HUGGINGFACE_HUB_CACHE", "/o"}, {"HF_HUB_CACHE", "/c"}}), "/c by HF_HUB_CACHE");
}

TEST(Environment, AsksTheUserDatabaseWhenHomeIsNotSet) {
  EXPECT_EQ(cache_of({}, "/d"), "/d/.cache/huggingface/hub by default");
  EXPECT_EQ(cache_of({{"HOME", "/h"}}, "/d"), "/h/.cache/huggingface/hub by default");
  EXPECT_EQ(cache_of({}), "none");
}

TEST(Environment, TreatsEmptyAsNotSet) {
  EXPECT_EQ(cache_of({{"HF_HOME", ""}, {"HOME", "/h"}}), "/h/.cache/huggingface/hub by default");
  EXPECT_EQ(Environment({{"A", ""}}, {}).get("A"), std::nullopt);
}

TEST(Environment, ExpandsTheTildeAndVariablesOfAPath) {
  const Environment environment({{"HOME", "/h"}, {"DISK", "/disk"}, {"EMPTY", ""}}, {});
  EXPECT_EQ(environment.expanded("~/models"), "/h/models");
  EXPECT_EQ(environment.expanded("~"), "/h");
  EXPECT_EQ(environment.expanded("~else/models"), "~else/models");
  EXPECT_EQ(environment.expanded("$DISK/a/${DISK}b"), "/disk/a//diskb");
  EXPECT_EQ(environment.expanded("a$EMPTY/b"), "a/b");
  EXPECT_EQ(environment.expanded("$NOBODY/${NOBODY}"), "$NOBODY/${NOBODY}");
  EXPECT_EQ(environment.expanded("a$"), "a$");
  EXPECT_EQ(environment.expanded("a${DISK"), "a${DISK");
  EXPECT_EQ(environment.expanded("${}"), "${}");
}

TEST(Environment, ReadsTheProcess) {
  setenv("INFERNO_ENVIRONMENT_TEST", "a=b", 1);
  EXPECT_EQ(Environment::of_process().get("INFERNO_ENVIRONMENT_TEST"), "a=b");
  unsetenv("INFERNO_ENVIRONMENT_TEST");
  EXPECT_EQ(Environment::of_process().get("INFERNO_ENVIRONMENT_TEST"), std::nullopt);
}

}  // namespace
}  // namespace inferno
