#include "cli/play/slash_command.h"

#include <gtest/gtest.h>

namespace inferno::play {
namespace {

TEST(SlashCommand, IsALineThatBeginsWithASlashAndAWord) {
  for (const char* line : {"/help", "/?", "/set temperature 0.7"}) EXPECT_TRUE(is_command(line)) << line;
  for (const char* line : {"", "/", "hello", " /help", "// comment", "/5"})
    EXPECT_FALSE(is_command(line)) << line;
}

TEST(SlashCommand, HasANameAndTheRestOfTheLine) {
  const SlashCommand command = parse_command("/set  stop  a b \n");
  EXPECT_EQ(command.action, Action::set);
  EXPECT_EQ(command.arguments, "stop  a b");
  EXPECT_EQ(parse_command("/bye").action, Action::leave);
  EXPECT_EQ(parse_command("/bye").arguments, "");
  EXPECT_EQ(parse_command("/system two\nlines").arguments, "two\nlines");
}

TEST(SlashCommand, SaysWhichWordItDoesNotKnow) {
  const SlashCommand command = parse_command("/hepl me");
  EXPECT_EQ(command.action, Action::unknown);
  EXPECT_EQ(command.name, "/hepl");
}

TEST(SlashCommand, HasHelpForEveryWord) {
  for (const CommandHelp& line : command_help()) {
    for (std::size_t at = 0; at < line.words.size();) {
      const std::size_t end = std::min(line.words.find(", ", at), line.words.size());
      EXPECT_NE(parse_command(line.words.substr(at, end - at)).action, Action::unknown) << line.words;
      at = end + 2;
    }
  }
}

TEST(SlashCommand, HasHelpThatNamesAnArgumentIfItTakesOne) {
  for (const CommandHelp& line : command_help()) {
    const Action action = parse_command(line.words.substr(0, line.words.find(','))).action;
    EXPECT_EQ(line.arguments.empty(), argument_of(action) == Argument::none) << line.words;
  }
}

TEST(ThinkSetting, IsASwitchOrAnEffort) {
  EXPECT_FALSE(parse_think("off").on);
  EXPECT_TRUE(parse_think("on").on);
  EXPECT_EQ(parse_think("high").effort, "high");
  EXPECT_FALSE(parse_think("maybe").known);
}

}  // namespace
}  // namespace inferno::play
