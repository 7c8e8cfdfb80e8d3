#include "cli/commands/shared/help_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace inferno {
namespace {

using testing::HasSubstr;
using testing::Not;

CommandDescription sample() {
  return {.name = "greet",
          .help = "Greet somebody, in a sentence that is longer than a narrow screen",
          .options = {{.names = {"-h", "--help"}, .help = "print this help", .group = "Options"},
                      {.names = {"-n", "--count"},
                       .help = "how often",
                       .group = "Options",
                       .takes_value = true,
                       .value_name = "N",
                       .default_text = "1"},
                      {.names = {"--style"},
                       .help = "how",
                       .group = "Options",
                       .takes_value = true,
                       .choices = {"plain", "loud"},
                       .excludes = {"--count"}},
                      {.names = {"--think", "--no-think"},
                       .help = "reason before greeting, or not, which takes a little longer",
                       .group = "Sampling"},
                      {.positional = "NAME", .help = "who", .group = "Options", .is_required = true}}};
}

int width_of(const std::string& page) {
  std::istringstream lines(page);
  std::size_t width = 0;
  for (std::string line; std::getline(lines, line);) width = std::max(width, line.size());
  return static_cast<int>(width);
}

TEST(HelpPage, ShowsArgumentsAndOptions) {
  EXPECT_EQ(help_page(sample(), "inferno greet", "", 80),
            "Greet somebody, in a sentence that is longer than a narrow screen\n"
            "\n"
            "Usage: inferno greet [OPTIONS] NAME\n"
            "\n"
            "Arguments:\n"
            "  NAME                    who\n"
            "\n"
            "Options:\n"
            "  -h, --help              print this help\n"
            "  -n, --count N           how often (default: 1)\n"
            "  --style plain|loud      how (not with --count)\n"
            "\n"
            "Sampling:\n"
            "  --think, --no-think     reason before greeting, or not, which takes a little\n"
            "                          longer\n");
}

TEST(HelpPage, FitsEveryScreen) {
  for (int columns = 40; columns <= 200; ++columns) {
    EXPECT_LE(width_of(help_page(sample(), "inferno greet", "and a last line that is long", columns)),
              columns);
  }
}

TEST(HelpPage, GroupsCommandsInTheOverview) {
  const Overview overview = {.description = "Greets.",
                             .groups = {{"Talk", {"greet", "unknown"}}},
                             .rest = "Tools",
                             .examples = {{"inferno greet Ada", "says hello to Ada, politely"}},
                             .last = "Start with: inferno greet"};
  const std::string page = overview_page(overview, {sample(), {.name = "look", .help = "Look"}}, 50);
  EXPECT_LE(width_of(page), 50);
  EXPECT_THAT(page,
              HasSubstr("Talk\n  greet        Greet somebody, in a sentence that\n               is longer"));
  EXPECT_THAT(page, HasSubstr("Tools\n  look         Look\n"));
  EXPECT_THAT(page, HasSubstr("Examples\n    inferno greet Ada\n      says hello to Ada, politely\n"));
  EXPECT_THAT(page, HasSubstr("Start with: inferno greet\n"));
  EXPECT_THAT(page, Not(HasSubstr("unknown")));
}

}  // namespace
}  // namespace inferno
