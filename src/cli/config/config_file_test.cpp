#include "cli/config/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "support/caught_error.h"
#include "support/temporary_directory.h"

namespace inferno::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<CommandDescription> commands() {
  const OptionDescription temperature = {
      .names = {"--temperature"}, .help = "how random", .takes_value = true};
  return {{.name = "play",
           .help = "",
           .second_names = {"run"},
           .options = {{.names = {"-h", "--help"}},
                       {.names = {"-m", "--model"}, .takes_value = true},
                       {.names = {"--think", "--no-think"}},
                       {.names = {"--stop"}, .takes_value = true, .takes_several = true},
                       temperature}},
          {.name = "serve",
           .help = "",
           .second_names = {},
           .options = {{.names = {"-c", "--context", "--ctx-size"}, .takes_value = true},
                       {.names = {"--port"}, .takes_value = true},
                       {.names = {"--api-key"}, .takes_value = true},
                       temperature}}};
}

ConfigFile read(const std::string& text) {
  return interpret(toml::parse(text, "file"), "file", commands());
}

Error error_of(const std::string& text) {
  return caught_error([&] { read(text); });
}

TEST(ConfigFile, HasSettingsForAllForCommandsAndForModels) {
  const ConfigFile file = read(
      "temperature = 0.7\nstop = ['a', 'b']\n[serve]\nport = 8080\n[model.\"qwen3:8b\"]\nno-think = true\n"
      "[aliases]\nmine = 'org/name:Q4_K_M'\nother = 'qwen3'\n");
  ASSERT_EQ(file.settings.size(), 4U);
  EXPECT_EQ(file.settings[0].key, "temperature");
  EXPECT_THAT(file.settings[1].values, ElementsAre("a", "b"));
  EXPECT_EQ(file.settings[2].scope, Scope::command);
  EXPECT_EQ(file.settings[2].owner, "serve");
  EXPECT_EQ(file.settings[3].scope, Scope::model);
  EXPECT_EQ(file.settings[3].owner, "qwen3:8b");
  EXPECT_EQ(file.place_of(file.settings[3].at), "file:6");
  const std::vector<hub::Alias> aliases = aliases_of(file);
  ASSERT_EQ(aliases.size(), 2U);
  EXPECT_EQ(aliases[0].original, "org/name:Q4_K_M");
  EXPECT_EQ(aliases[1].original, hub::find_alias("qwen3")->original);
  EXPECT_GT(aliases[1].original_bytes, 0U);
}

TEST(ConfigFile, AnswersAnUnknownKeyWithTheOneThatWasMeant) {
  EXPECT_STREQ(error_of("\n  temprature = 1").what(), "file:2:3: unknown option \"temprature\"");
  EXPECT_EQ(error_of("temprature = 1").advice().why, "did you mean temperature?");
  EXPECT_EQ(error_of("[serve]\nprt = 1").advice().why, "did you mean port?");
  EXPECT_EQ(error_of("[srve]").advice().why, "did you mean serve?");
  EXPECT_EQ(error_of("[alias]\na = 'b/c'").advice().why, "did you mean aliases?");
  EXPECT_EQ(error_of("[model.x]\nprt = 1").advice().why, "did you mean port?");
  EXPECT_EQ(error_of("[run]\n").advice().next, "write [play]");
  EXPECT_THAT(error_of("[play]\nport = 1").what(), StartsWith("file:2:1: unknown option"));
  EXPECT_THAT(error_of("help = true").what(), HasSubstr("unknown option"));
  EXPECT_THAT(error_of("[serve.deep]").what(), HasSubstr("serve has no tables"));
  EXPECT_THAT(error_of("[model.a.b]").what(), HasSubstr("a model has no tables"));
  EXPECT_THAT(error_of("model.qwen2.5.temperature = 1").advice().why, HasSubstr("in quotes"));
}

TEST(ConfigFile, RefusesValuesOfTheWrongKind) {
  EXPECT_STREQ(error_of("think = 1").what(), "file:1:9: \"think\": expected true or false");
  EXPECT_THAT(error_of("think = [true]").what(), HasSubstr("expected true or false"));
  EXPECT_THAT(error_of("temperature = true").what(), HasSubstr("found a boolean"));
  EXPECT_THAT(error_of("temperature = [1, 2]").what(), HasSubstr("expected one value, found an array"));
  EXPECT_THAT(error_of("stop = []").what(), HasSubstr("at least one value"));
  EXPECT_THAT(error_of("[serve]\ncontext = 1\nctx-size = 2").what(),
              StartsWith("file:3:1: \"--context\" is set"));
}

TEST(ConfigFile, RefusesSecretsAndOddNames) {
  EXPECT_THAT(error_of("[serve]\napi-key = 'x'").what(), HasSubstr("does not belong in this file"));
  EXPECT_THAT(error_of("[model.a]\nmodel = 'x'").what(), HasSubstr("cannot name another one"));
  for (const char* alias :
       {"'a/b' = 'org/name'", "builtin = 'org/name'", "'' = 'org/name'", "a = 'name'", "a = '/models/x.gguf'",
        "a = 'org/name/file'", "a = 3", "a.b = 'org/name'", "'-a' = 'org/name'"}) {
    EXPECT_THROW(read(std::string("[aliases]\n") + alias), Error) << alias;
  }
}

TEST(ConfigFile, ChecksAValueForEveryCommandThatHasTheOption) {
  std::vector<std::string> asked;
  const ProblemOf problem_of = [&](const std::string& command, const std::string& key, const auto&) {
    asked.push_back(command + "." + key);
    return command == "serve" ? "--temperature: expected a number" : "";
  };
  const Error error =
      caught_error([&] { check_values(read("temperature = 'hot'"), commands(), problem_of); });
  EXPECT_THAT(asked, ElementsAre("play.temperature", "serve.temperature"));
  EXPECT_STREQ(error.what(), "file:1:15: --temperature: expected a number");
  EXPECT_NO_THROW(check_values(read("[play]\ntemperature = 'hot'"), commands(), problem_of));
}

TEST(ConfigFile, KnowsAModelByAllOfItsNames) {
  EXPECT_TRUE(means_model("qwen3", "Qwen3"));
  EXPECT_TRUE(means_model("qwen3", "Qwen/Qwen3-8B"));
  EXPECT_TRUE(means_model("Qwen/Qwen3-8B", "qwen3:8b"));
  EXPECT_TRUE(means_model("Qwen/Qwen3-8B-GGUF:Q4_K_M", "qwen3"));
  EXPECT_TRUE(means_model("org/name", "org/name@main:Q8_0"));
  EXPECT_FALSE(means_model("org/name:Q8_0", "org/name:Q4_0"));
  EXPECT_FALSE(means_model("qwen3:4b", "qwen3:8b"));
  EXPECT_TRUE(means_model("./folder", "./folder"));
  EXPECT_FALSE(means_model("./folder", "org/folder"));
}

TEST(ConfigFile, RefusesAFileThatOthersCanWriteTo) {
  const TemporaryDirectory folder;
  const std::filesystem::path path = folder.path() / "config.toml";
  std::ofstream(path) << "temperature = 0.5\n";
  ::chmod(path.c_str(), 0644);
  EXPECT_EQ(read_config(path, false, commands()).settings.size(), 1U);
  for (const mode_t mode : {0664U, 0646U, 0666U}) {
    ::chmod(path.c_str(), mode);
    const Error error = caught_error([&] { read_config(path, true, commands()); });
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_THAT(error.advice().next, StartsWith("chmod go-w "));
  }
  EXPECT_EQ(caught_error([&] { read_config(folder.path(), true, commands()); }).kind(), ErrorKind::io);
  EXPECT_EQ(caught_error([&] { read_config(folder.path() / "no", true, commands()); }).kind(),
            ErrorKind::not_found);
}

}  // namespace
}  // namespace inferno::config
