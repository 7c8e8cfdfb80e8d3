#include "chat/reply/text_reply.h"

#include <gtest/gtest.h>

namespace inferno {
namespace {

constexpr ReasoningTags think = {"<think>", "</think>"};

// "reasoning|content"; checks that every split into two pieces and into single bytes gives the same.
std::string split(const std::string& text, bool begins_inside = false, ReasoningTags tags = think) {
  std::string first;
  for (std::size_t cut = 0; cut <= text.size() + 1; ++cut) {
    ReasoningSplitter splitter(tags, begins_inside ? ReplyBegins::inside_reasoning : ReplyBegins::anywhere);
    std::string reasoning, content;
    const auto add = [&](const ReasoningSplitter::Split& part) {
      reasoning += part.reasoning;
      content += part.content;
    };
    if (cut > text.size()) {
      for (const char byte : text) add(splitter.push(std::string(1, byte)));
    } else {
      add(splitter.push(text.substr(0, cut)));
      add(splitter.push(text.substr(cut)));
    }
    add(splitter.finish());
    const std::string result = reasoning + "|" + content;
    if (cut == 0) first = result;
    EXPECT_EQ(result, first) << "cut at " << cut;
  }
  return first;
}

TEST(ReasoningSplitter, SeparatesReasoningAndItsLineBreaks) {
  EXPECT_EQ(split("<think>\nLet me\nsee.\n</think>\n\nYes."), "Let me\nsee.|Yes.");
  EXPECT_EQ(split("\n<think>a</think>b"), "a|b");
  EXPECT_EQ(split("<think>\n\n</think>\n\nYes."), "|Yes.");
}

TEST(ReasoningSplitter, BeginsInsideIfThePromptOpenedTheReasoning) {
  EXPECT_EQ(split("Hm.\n</think>\nYes.", true), "Hm.|Yes.");
  EXPECT_EQ(split("<think>\nHm.</think>Yes.", true), "Hm.|Yes.");
  EXPECT_EQ(split("</think>Yes.", true), "|Yes.");
  EXPECT_EQ(split("cut off </thi", true), "cut off </thi|");
}

TEST(ReasoningSplitter, IgnoresTagsLaterInTheReply) {
  EXPECT_EQ(split("The tag <think> opens </think> it."), "|The tag <think> opens </think> it.");
  EXPECT_EQ(split("<think>a </thin b</think>c</think>"), "a </thin b|c</think>");
  EXPECT_EQ(split("<thin"), "|<thin");
  EXPECT_EQ(split("  \n"), "|  \n");
}

TEST(ReasoningSplitter, SupportsOtherTagsAndNoTags) {
  EXPECT_EQ(split("[THINK]a[/THINK]b", false, {"[THINK]", "[/THINK]"}), "a|b");
  EXPECT_EQ(split("<think>a</think>b", false, {}), "|<think>a</think>b");
}

}  // namespace
}  // namespace inferno
