#include "cli/play/answer_view.h"

#include <gtest/gtest.h>

namespace inferno::play {
namespace {

std::string shown(ViewOptions options, const std::vector<ReplyPart>& parts) {
  AnswerView view(options);
  std::string out;
  for (const ReplyPart& part : parts) out += view.show(part);
  return out + view.finish();
}

constexpr ViewOptions pipe = {.is_terminal = false, .has_colour = false, .shows_reasoning = false};
constexpr ViewOptions colours = {
    .is_terminal = true, .is_rendered = true, .has_colour = true, .shows_reasoning = true};

TEST(AnswerView, GivesAPipeTheTextAsItIs) {
  EXPECT_EQ(shown(pipe, {ContentDelta{"**a**\x1b"}, ReasoningDelta{"hm"}, ContentDelta{"b"}}),
            "**a**\x1b"
            "b\n");
  EXPECT_EQ(shown(pipe, {ContentDelta{"a\n"}}), "a\n");
  EXPECT_EQ(shown(pipe, {}), "");
}

TEST(AnswerView, ColoursMarkdownOnATerminal) {
  EXPECT_EQ(shown(colours, {ContentDelta{"a *"}, ContentDelta{"*b*"}, ContentDelta{"*"}}),
            "a \x1b[1m**b**\x1b[0m\n");
}

TEST(AnswerView, BreaksLinesAtWordBordersOnATerminalOnly) {
  constexpr ViewOptions narrow = {.is_terminal = true, .is_rendered = true, .columns = 12};
  EXPECT_EQ(shown(narrow, {ReasoningDelta{"let me thi"}, ReasoningDelta{"nk of it"},
                           ContentDelta{"a long ans"}, ContentDelta{"wer here"}}),
            "let me think\nof it\n\na long\nanswer here\n");
  EXPECT_EQ(shown(narrow, {ContentDelta{"```\nnot broken at all\n```\n"}}), "```\nnot broken at all\n```\n");
  EXPECT_EQ(shown(pipe, {ContentDelta{"a long answer here"}}), "a long answer here\n");
  constexpr ViewOptions as_written = {.is_terminal = true, .is_rendered = false, .columns = 12};
  EXPECT_EQ(shown(as_written, {ContentDelta{"a long answer\n|a|\n|-|\n"}}), "a long answer\n|a|\n|-|\n");
}

TEST(AnswerView, DimsReasoningAndSetsItApart) {
  EXPECT_EQ(shown(colours, {ReasoningDelta{"think"}, ReasoningDelta{"ing"}, ContentDelta{"yes"}}),
            "\x1b[2mthinking\x1b[0m\n\nyes\n");
  EXPECT_EQ(shown({.is_terminal = true, .is_rendered = true, .has_colour = true, .shows_reasoning = false},
                  {ReasoningDelta{"thinking"}, ContentDelta{"yes"}}),
            "yes\n");
}

TEST(AnswerView, DoesNotLetAModelDriveTheTerminal) {
  const std::string out = shown({.is_terminal = true, .has_colour = false, .shows_reasoning = true},
                                {ReasoningDelta{"\x1b[2J"}, ContentDelta{"\x1b]0;owned\x07\u202e\u009b"},
                                 ToolCallDelta{0, "id", "f\x1b", "{\x08}"}});
  for (const char byte : out) EXPECT_TRUE(byte == '\n' || static_cast<unsigned char>(byte) >= 0x20) << out;
  EXPECT_EQ(out.find("\u202e"), std::string::npos);
  EXPECT_NE(out.find("\\x1b]0;owned\\x07"), std::string::npos);
}

TEST(AnswerView, NamesToolCalls) {
  EXPECT_EQ(shown(pipe, {ContentDelta{"Let me look."}, ToolCallDelta{0, "1", "weather", "{\"city\":"},
                         ToolCallDelta{0, "", "", "\"Rome\"}"}, ToolCallDelta{1, "2", "time", "{}"}}),
            "Let me look.\n[calls weather] {\"city\":\"Rome\"}\n[calls time] {}\n");
}

TEST(SessionStats, CountsOneTokenAsOne) {
  SessionStats stats;
  stats.prompt_tokens = stats.generated_tokens = 1;
  EXPECT_EQ(session_lines(stats),
            "answers   0\n"
            "prompts   1 token: 0 cached, 1 prefilled at - tokens/s\n"
            "generated 1 token at - tokens/s\n");
}

}  // namespace
}  // namespace inferno::play
