#include "cli/commands/shared/argument_errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "cli/commands/shared/command_line.h"

namespace inferno {
namespace {

void add_test_command(CommandLine app) {
  const Command command = app.command("greet", "Greets", {"hail"});
  static std::string name;
  static int count = 1;
  static std::vector<std::string> tags;
  command.option("TEXT,--name", name, "who");
  static std::string device;
  command.option("--device", device, "where");
  command.option("--threads", count, "with how many");
  command.option("-n,--count", count, "how often").range(1, 9);
  static std::optional<bool> loud;
  command.flag("--loud,!--quiet", loud, "in which volume");
  command.option("--style", tags, "how").one_of({"plain", "loud", "kind"});
  command.option(
      "--tone",
      [](const std::string& tone) {
        fail(ErrorKind::invalid_request, "--tone: not " + tone,
             {.why = {}, .next = tone == "shrill" ? "lower it" : ""});
      },
      "in which voice");
  command.run([] {
    if (name == "nobody") fail(ErrorKind::invalid_request, "nobody is here");
    if (name == "everybody") fail(ErrorKind::io, "too many are here");
  });
}

void add_other_command(CommandLine app) {
  const Command command = app.command("fetch", "Fetches");
  static std::string model;
  command.option("MODEL", model, "what");
  command.run([] {});
}

// The error of a command line, with its advice.
std::string error_of(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "test");
  constexpr AddCommand all[] = {add_test_command, add_other_command};
  try {
    run_command_line({.name = "test", .version = "1"}, all, static_cast<int>(arguments.size()),
                     arguments.data());
  } catch (const Error& error) {
    return std::string(error.what()) + " | " + error.advice().why + " | " + error.advice().next;
  }
  return "";
}

TEST(ArgumentErrors, AreInTheProgramsOwnWords) {
  EXPECT_EQ(error_of({"geret"}), "unknown command \"geret\" | did you mean greet? | test help");
  EXPECT_EQ(error_of({"xyzzy", "a"}), "unknown command \"xyzzy\" |  | test help");
  EXPECT_EQ(error_of({"greet", "--cuont", "2"}),
            "unknown option --cuont | did you mean --count? | test greet --help");
  EXPECT_EQ(error_of({"greet", "Once", "upon", "a", "time"}),
            "unexpected arguments: upon a time | TEXT is one argument: quote a text with spaces | test greet "
            "--help");
  EXPECT_EQ(error_of({"fetch", "a", "b"}),
            "unexpected argument: b | expected MODEL only | test fetch --help");
  EXPECT_EQ(error_of({"greet", "-ngl", "99"}),
            "unknown option -ngl | did you mean --device? | test greet --help");
  EXPECT_EQ(error_of({"greet", "-t", "4"}), "");
  EXPECT_EQ(error_of({"greet", "-nfew"}),
            "unknown option -nfew | a value that begins with a letter needs a blank before it: -n few | test "
            "greet --help");
  EXPECT_EQ(error_of({"greet", "--n-threads", "4"}),
            "unknown option --n-threads | did you mean --threads? | test greet --help");
  EXPECT_EQ(error_of({"greet", "--json-schema", "{}"}),
            "unknown option --json-schema |  | test greet --help");
  EXPECT_EQ(error_of({"help", "geret"}), error_of({"geret"}));
  EXPECT_EQ(error_of({"geret", "--help"}), error_of({"geret"}));
  EXPECT_EQ(error_of({"greet", "--style", "rude"}),
            "--style: expected plain, loud or kind, found \"rude\" |  | test greet --help");
  EXPECT_EQ(error_of({"greet", "--count", "x"}),
            "--count: expected a number, found \"x\" |  | test greet --help");
  EXPECT_EQ(error_of({"greet", "--count", "10"}),
            "--count: expected 1 to 9, found 10 |  | test greet --help");
  EXPECT_EQ(error_of({"greet", "--count"}), "--count: no value given |  | test greet --help");
  EXPECT_EQ(error_of({"greet", "--count", "1", "-n", "1"}),
            "--count: expected once, given 2 times |  | test greet --help");
  EXPECT_EQ(error_of({"greet", "Ada", "--name", "Bob"}),
            "--name: expected once, given 2 times |  | test greet --help");
  EXPECT_EQ(error_of({"greet", "nobody"}), "nobody is here |  | test greet --help");
  EXPECT_EQ(error_of({"greet", "everybody"}), "too many are here |  | ");
  EXPECT_EQ(error_of({"greet", "--loud=maybe"}),
            "--loud: expected true or false, found \"maybe\" |  | test greet --help");
  EXPECT_EQ(error_of({"greet", "--quiet=off", "Ada"}), "");
  EXPECT_EQ(error_of({"greet", "--tone", "flat"}), "--tone: not flat |  | test greet --help");
  EXPECT_EQ(error_of({"greet", "--tone", "shrill"}), "--tone: not shrill |  | lower it");
}

TEST(ArgumentErrors, DoNotStopSecondNamesAndJoinedValues) {
  EXPECT_EQ(error_of({"hail", "Ada", "-n5"}), "");
  EXPECT_EQ(error_of({"greet", "Ada", "--count=3", "--style", "kind"}), "");
  EXPECT_EQ(error_of({"help", "greet"}), "");
  EXPECT_EQ(error_of({"-V"}), "");
}

}  // namespace
}  // namespace inferno
