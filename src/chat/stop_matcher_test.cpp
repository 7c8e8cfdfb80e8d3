#include "chat/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

namespace inferno {
namespace {

struct Outcome {
  std::string shown, matched;
  bool operator==(const Outcome&) const = default;
};

Outcome run(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopMatcher matcher(stops);
  Outcome outcome;
  for (const std::string& piece : pieces) outcome.shown += matcher.push(piece);
  outcome.shown += matcher.finish();
  outcome.matched = matcher.matched();
  return outcome;
}

TEST(StopMatcher, FindsAStopStringAcrossPieces) {
  EXPECT_EQ(run({"STOP"}, {"one ST", "OP two"}), (Outcome{"one ", "STOP"}));
  EXPECT_EQ(run({"\n\n"}, {"one\n", "two\n", "\nthree"}), (Outcome{"one\ntwo", "\n\n"}));
}

TEST(StopMatcher, HoldsBackOnlyWhatMayBecomeAStopString) {
  StopMatcher matcher({"</s>", "User:"});
  EXPECT_EQ(matcher.push("a < b"), "a < b");
  EXPECT_EQ(matcher.push("c </"), "c ");
  EXPECT_EQ(matcher.push("s"), "");
  EXPECT_EQ(matcher.push("ection> Us"), "</section> ");
  EXPECT_EQ(matcher.finish(), "Us");
  EXPECT_FALSE(matcher.stopped());
}

TEST(StopMatcher, ShowsNothingMoreOnceStopped) {
  StopMatcher matcher({"end"});
  EXPECT_EQ(matcher.push("the end of it"), "the ");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.push(" and more"), "");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, TakesTheStringThatEndsFirstThenTheLongest) {
  EXPECT_EQ(run({"abcd", "bc"}, {"xabcd"}), (Outcome{"xa", "bc"}));
  EXPECT_EQ(run({"c", "bc"}, {"xabc"}), (Outcome{"xa", "bc"}));
}

TEST(StopMatcher, SeesAStringThatBeginsInsideAFailedOne) {
  EXPECT_EQ(run({"aab"}, {"aaab"}), (Outcome{"a", "aab"}));
  EXPECT_EQ(run({"abacad"}, {"ababacad!"}), (Outcome{"ab", "abacad"}));
}

TEST(StopMatcher, LetsEverythingThroughWithoutStopStrings) {
  EXPECT_EQ(run({}, {"a", "b"}), (Outcome{"ab", ""}));
  EXPECT_EQ(run({""}, {"a", "b"}), (Outcome{"ab", ""}));
}

TEST(StopMatcher, BeginsAgainAfterWhatItGaveBack) {
  StopMatcher matcher({"abc"});
  EXPECT_EQ(matcher.push("xab"), "x");
  EXPECT_EQ(matcher.finish(), "ab");
  EXPECT_EQ(matcher.push("cabx"), "cabx");
  EXPECT_FALSE(matcher.stopped());
  EXPECT_EQ(matcher.push("abcd"), "");
  EXPECT_EQ(matcher.matched(), "abc");
}

TEST(StopMatcher, GivesTheSameForEverySplitAndAgreesWithASearch) {
  std::mt19937 random(7);
  const auto letters = [&](std::size_t most) {
    std::string text;
    for (std::size_t n = random() % most; n > 0; --n) text += "ab"[random() % 2];
    return text;
  };
  for (int round = 0; round < 500; ++round) {
    const std::vector<std::string> stops = {"b" + letters(4), "a" + letters(6)};
    const std::string text = letters(24);
    Outcome expected{text, ""};
    for (std::size_t end = 1; end <= text.size() && expected.matched.empty(); ++end) {
      for (const std::string& stop : stops) {
        if (!text.substr(0, end).ends_with(stop) || stop.size() <= expected.matched.size()) continue;
        expected = {text.substr(0, end - stop.size()), stop};
      }
    }
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
      EXPECT_EQ(run(stops, {text.substr(0, cut), text.substr(cut)}), expected) << text << " at " << cut;
    }
  }
}

}  // namespace
}  // namespace inferno
