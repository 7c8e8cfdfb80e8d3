#include "cli/completion/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace inferno::completion {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

void add_serve(CommandLine app) {
  static int port = 0, colour = 0;
  static bool quiet = false;
  const Command command = app.command("serve", "Serve it's models");
  command.option("-p,--port", port, "the [port]: a number");
  command.choice("--colour", colour, {{"red", 1}, {"blue", 2}}, "of the page");
  command.flag("--quiet", quiet, "say nothing");
  command.flags_of_others();
}

std::vector<CommandDescription> sample() {
  static constexpr AddCommand all[] = {add_serve};
  return describe(all);
}

TEST(Completion, KnowsCommandsAndTheirOptions) {
  const auto commands = sample();
  ASSERT_EQ(commands.size(), 1U);
  EXPECT_EQ(commands[0].name, "serve");
  const auto& options = commands[0].options;
  ASSERT_EQ(options.size(), 4U);  // with --help
  EXPECT_THAT(options[1].names, ElementsAre("-p", "--port"));
  EXPECT_TRUE(options[1].takes_value);
  EXPECT_THAT(options[1].choices, IsEmpty());
  EXPECT_THAT(options[2].choices, ElementsAre("red", "blue"));
  EXPECT_THAT(options[3].names, ElementsAre("--quiet"));
  EXPECT_FALSE(options[3].takes_value);
}

TEST(Completion, ForEveryShellQuotesWhatItSays) {
  EXPECT_THAT(for_bash(sample()), HasSubstr("serve:--colour) words='red blue' has_value=1"));
  EXPECT_THAT(for_zsh(sample()), HasSubstr(R"('serve:Serve it'\''s models')"));
  EXPECT_THAT(for_zsh(sample()), HasSubstr(R"('*--port[the \[port\]\: a number]:value:_files')"));
  EXPECT_THAT(for_fish(sample()), HasSubstr(R"(-a serve -d 'Serve it'\''s models')"));
  EXPECT_THAT(for_fish(sample()), HasSubstr("-l colour -x -a 'red blue' -d 'of the page'"));
  for (const auto& script : {for_bash(sample()), for_zsh(sample()), for_fish(sample())}) {
    EXPECT_THAT(script, Not(HasSubstr("--other")));
  }
}

}  // namespace
}  // namespace inferno::completion
