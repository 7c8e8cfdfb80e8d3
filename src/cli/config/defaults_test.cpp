#include "cli/config/defaults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/caught_error.h"

namespace inferno::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Words = std::vector<std::string>;

CommandDescription play() {
  return {.name = "play",
          .help = "",
          .second_names = {"run"},
          .options = {{.names = {"-h", "--help"}},
                      {.names = {"-m", "--model"}, .positional = "MODEL", .takes_value = true},
                      {.names = {"-n", "--max-tokens"}, .takes_value = true},
                      {.names = {"-q", "--quiet"}},
                      {.names = {"--verbose"}},
                      {.names = {"--think", "--no-think"}},
                      {.names = {"--temperature"}, .takes_value = true},
                      {.names = {"--stop"}, .takes_value = true, .takes_several = true, .takes_words = true},
                      {.names = {"--stream"}},
                      {.names = {"--json"}, .excludes = {"--stream"}},
                      {.names = {"--seed"}, .takes_value = true, .needs = {"--url"}},
                      {.names = {"--url"}, .takes_value = true},
                      {.names = {"--api-key"}, .takes_value = true},
                      {.names = {"--api-key-file"}, .takes_value = true}}};
}

// The result of a command line with a configuration and an environment.
Resolution resolved(const Words& arguments, const std::string& text = "",
                    Environment::Values variables = {}) {
  const CommandDescription command = play();
  const Environment environment(std::move(variables), std::nullopt);
  const ConfigFile file = interpret(toml::parse(text, "file"), "file", std::span(&command, 1));
  return resolve(command, arguments, {.environment = environment, .file = &file});
}

TEST(Defaults, LeaveACommandLineAloneWithoutAny) {
  EXPECT_THAT(resolved({"play", "m", "-n", "3"}).arguments, ElementsAre("play", "m", "-n", "3"));
}

TEST(Defaults, OfTheFileComeBeforeWhatWasTyped) {
  EXPECT_THAT(resolved({"run", "m"}, "temperature = 0.5\nthink = false").arguments,
              ElementsAre("run", "--temperature", "0.5", "--think=false", "m"));
}

TEST(Defaults, AreBeatenByFlagsInEveryForm) {
  const std::string file = "max-tokens = 5";
  for (const Words& typed : {Words{"play", "-n3"}, Words{"play", "-n", "3"}, Words{"play", "--max-tokens=3"},
                             Words{"play", "-qn3"}, Words{"play", "m", "--max-tokens", "3"}}) {
    EXPECT_EQ(resolved(typed, file).arguments, typed);
  }
  // A value that looks like the option is none.
  EXPECT_THAT(resolved({"play", "--temperature", "-n"}, file).arguments,
              ElementsAre("play", "--max-tokens", "5", "--temperature", "-n"));
  EXPECT_THAT(resolved({"play", "--", "-n"}, file).arguments,
              ElementsAre("play", "--max-tokens", "5", "--", "-n"));
  EXPECT_EQ(resolved({"play", "--no-think"}, "think = true").arguments, (Words{"play", "--no-think"}));
  EXPECT_EQ(resolved({"play", "typed"}, "model = 'default'").arguments, (Words{"play", "typed"}));
}

TEST(Defaults, OfTheEnvironmentBeatTheFile) {
  const Resolution result = resolved({"play"}, "temperature = 0.5\nmax-tokens = 7\n",
                                     {{"INFERNO_ARG_TEMPERATURE", "0.2"}, {"INFERNO_ARG_THINK", "off"}});
  EXPECT_THAT(result.arguments,
              ElementsAre("play", "--think=false", "--temperature", "0.2", "--max-tokens", "7"));
  EXPECT_EQ(origin_of(result.effective[1]), "INFERNO_ARG_TEMPERATURE");
  EXPECT_EQ(origin_of(result.effective[2]), "file:2");
  EXPECT_THAT(resolved({"play", "--temperature", "1"}, "", {{"INFERNO_ARG_TEMPERATURE", "0.2"}}).arguments,
              ElementsAre("play", "--temperature", "1"));
  EXPECT_THAT(caught_error([] { resolved({"play"}, "", {{"INFERNO_ARG_THINK", "perhaps"}}); }).what(),
              HasSubstr("INFERNO_ARG_THINK: expected true or false"));
}

TEST(Defaults, OfAModelBeatThoseOfTheCommandAndOfAll) {
  const std::string file =
      "temperature = 0.1\nmax-tokens = 1\nquiet = true\n[play]\ntemperature = 0.2\nmax-tokens = 2\n"
      "[model.\"Qwen/Qwen3-8B\"]\ntemperature = 0.3\n[model.qwen3]\ntemperature = 0.4\n";
  EXPECT_THAT(resolved({"play", "qwen3"}, file).arguments,
              ElementsAre("play", "--temperature", "0.4", "--max-tokens", "2", "--quiet=true", "qwen3"));
  EXPECT_THAT(
      resolved({"play", "-m", "qwen3:8b"}, file).arguments,
      ElementsAre("play", "--temperature", "0.3", "--max-tokens", "2", "--quiet=true", "-m", "qwen3:8b"));
  EXPECT_THAT(resolved({"play", "other"}, file).arguments,
              ElementsAre("play", "--temperature", "0.2", "--max-tokens", "2", "--quiet=true", "other"));
}

TEST(Defaults, OfTheModelThatTheFileNames) {
  EXPECT_THAT(resolved({"play"}, "[play]\nmodel = 'qwen3'\n[model.qwen3]\ntemperature = 0.4\n").arguments,
              ElementsAre("play", "--temperature", "0.4", "--model", "qwen3"));
}

TEST(Defaults, DoNotTakeWordsAwayFromTheCommand) {
  EXPECT_THAT(resolved({"play", "m"}, "stop = ['a', '-b']").arguments,
              ElementsAre("play", "--stop", "a", "--stop", "-b", "--", "m"));
}

TEST(Defaults, GiveWayToOptionsThatExcludeThem) {
  EXPECT_EQ(resolved({"play", "--json"}, "stream = true").arguments, (Words{"play", "--json"}));
  EXPECT_EQ(resolved({"play", "--stream"}, "json = true").arguments, (Words{"play", "--stream"}));
  EXPECT_THAT(resolved({"play"}, "json = true\n[play]\nstream = true").arguments,
              ElementsAre("play", "--stream=true"));
  const Error error = caught_error([] { resolved({"play"}, "json = true\nstream = true"); });
  EXPECT_STREQ(error.what(), "file:2: --stream and --json cannot be used together");
}

TEST(Defaults, WaitForTheOptionThatTheyNeed) {
  EXPECT_THAT(resolved({"play"}, "seed = 1").arguments, ElementsAre("play"));
  EXPECT_THAT(resolved({"play", "--url", "x"}, "seed = 1").arguments,
              ElementsAre("play", "--seed", "1", "--url", "x"));
  EXPECT_THAT(resolved({"play"}, "url = 'x'\n[play]\nseed = 1").arguments,
              ElementsAre("play", "--url", "x", "--seed", "1"));
}

TEST(Defaults, LeaveKeysOfTheEnvironmentToTheCommandAndDoNotShowThem) {
  const Resolution result = resolved({"play"}, "api-key-file = 'f'",
                                     {{"INFERNO_API_KEY", "secret"}, {"INFERNO_API_KEY_FILE", "g"}});
  EXPECT_THAT(result.arguments, ElementsAre("play"));
  EXPECT_THAT(described(play(), result), testing::Not(HasSubstr("secret")));
  EXPECT_THAT(described(play(), result), HasSubstr("--api-key-file g  (INFERNO_API_KEY_FILE)"));
  EXPECT_THAT(resolved({"play"}, "api-key-file = 'f'").arguments, ElementsAre("play", "--api-key-file", "f"));
}

TEST(Defaults, AreDescribedIfVerbose) {
  EXPECT_FALSE(resolved({"play"}, "verbose = false").is_verbose);
  EXPECT_TRUE(resolved({"play"}, "verbose = true").is_verbose);
  const Resolution result = resolved({"play", "--verbose", "-n", "3"}, "temperature = 0.5");
  EXPECT_TRUE(result.is_verbose);
  EXPECT_THAT(described(play(), result), HasSubstr("  -n 3  (flag)\n  --temperature 0.5  (file:1)\n"));
}

TEST(Defaults, AreNotNeededForHelp) {
  EXPECT_TRUE(asks_for_help(play(), {"play", "--help"}));
  EXPECT_TRUE(asks_for_help(play(), {"play", "m", "-h"}));
  EXPECT_FALSE(asks_for_help(play(), {"play", "--temperature", "-h"}));
  EXPECT_FALSE(asks_for_help(play(), {"play", "--", "-h"}));
}

}  // namespace
}  // namespace inferno::config
