#include "cli/commands/shared/other_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "cli/commands/shared/command_line.h"

namespace inferno {
namespace {

using testing::HasSubstr;

int threads = 0;
bool is_verbose = false;
std::string model, stop;

void add_serve(CommandLine app) {
  const Command command = app.command("serve", "Serves");
  command.option("MODEL,-m,--hf", model, "what");
  command.option("--threads", threads, "how many");
  command.option("--stop", stop, "where");
  command.flag("--verbose", is_verbose, "more");
  command.flags_of_others();
  command.run([] {});
}

// The error of a command line with its advice, or what it wrote on stderr.
std::string result_of(std::vector<const char*> arguments) {
  threads = 0;
  is_verbose = false;
  model = stop = "";
  arguments.insert(arguments.begin(), {"test", "serve"});
  constexpr AddCommand all[] = {add_serve};
  testing::internal::CaptureStderr();
  std::string failure;
  try {
    run_command_line({.name = "test", .version = "1"}, all, static_cast<int>(arguments.size()),
                     arguments.data());
  } catch (const Error& error) {
    failure = std::string(error.what()) + " | " + error.advice().next;
  }
  const std::string notes = testing::internal::GetCapturedStderr();
  return failure.empty() ? notes : failure;
}

TEST(FlagsOfOtherPrograms, AreListedOnce) {
  std::set<std::string_view> names;
  for (const OtherFlag& flag : flags_of_other_programs()) {
    for (const std::string_view name : words_of_list(flag.names)) {
      EXPECT_TRUE(names.insert(name).second) << name;
      EXPECT_TRUE(name.starts_with('-')) << name;
      EXPECT_EQ(find_flag_of_others(name), &flag) << name;
    }
    EXPECT_EQ(flag.advice.empty(), flag.use == OtherFlagUse::ours) << flag.names;
  }
}

TEST(FlagsOfOtherPrograms, WithOneDashAreNotSeveralFlags) {
  EXPECT_TRUE(is_long_with_one_dash("-ngl"));
  EXPECT_TRUE(is_long_with_one_dash("-np=4"));
  EXPECT_FALSE(is_long_with_one_dash("-n"));
  EXPECT_FALSE(is_long_with_one_dash("-t=4"));
  EXPECT_FALSE(is_long_with_one_dash("-qy"));
  EXPECT_FALSE(is_long_with_one_dash("--jinja"));
}

TEST(FlagsOfOtherPrograms, MeanOurOptionsWhereTheyAreTheSame) {
  EXPECT_THAT(result_of({"-t", "4", "-hf", "org/name", "-v"}), HasSubstr("--verbose true  (flag)"));
  EXPECT_EQ(threads, 4);
  EXPECT_EQ(model, "org/name");
  EXPECT_TRUE(is_verbose);
  EXPECT_EQ(result_of({"-hfr=org/name"}), "");
  EXPECT_EQ(model, "org/name");
}

TEST(FlagsOfOtherPrograms, WithoutEffectAreNamed) {
  EXPECT_EQ(result_of({"--jinja", "builtin"}),
            "note: --jinja has no effect: the model's template is always used\n");
  EXPECT_EQ(model, "builtin");
  EXPECT_THAT(result_of({"-cb", "--metrics", "--reasoning-parser", "qwen3", "builtin"}),
              testing::AllOf(HasSubstr("-cb has no effect"), HasSubstr("--metrics has no effect"),
                             HasSubstr("--reasoning-parser has no effect")));
  EXPECT_EQ(model, "builtin");
  EXPECT_THAT(result_of({"--trust-remote-code", "builtin"}), HasSubstr("code of a model is never run"));
  EXPECT_EQ(model, "builtin");
  EXPECT_THAT(result_of({"--gpu-memory-utilization", "0.9"}), HasSubstr("--kv-cache-memory-bytes"));
  EXPECT_THAT(result_of({"-tp", "1"}), HasSubstr("note: -tp has no effect"));
  EXPECT_THAT(result_of({"-fa", "-t", "4"}), HasSubstr("note: -fa has no effect"));
  EXPECT_THAT(result_of({"-fa", "on"}), HasSubstr("note: -fa has no effect"));
}

TEST(FlagsOfOtherPrograms, ThatMatterSayWhatToDoInstead) {
  EXPECT_EQ(result_of({"-tp", "2"}),
            "-tp: \"2\" is not supported | leave it out: Inferno uses one GPU; run one "
            "server for each and a balancer in front");
  EXPECT_EQ(result_of({"--revision", "main"}),
            "--revision: this command does not have the option | write the revision after the name: "
            "org/name@REVISION");
  EXPECT_THAT(result_of({"-md", "draft.gguf"}), HasSubstr("speculative decoding is not available"));
  EXPECT_THAT(result_of({"--reasoning-budget", "0"}), HasSubstr("--reasoning-effort"));
}

TEST(FlagsOfOtherPrograms, MayBeValues) {
  EXPECT_EQ(result_of({"--stop", "-v", "-t", "2"}), "");
  EXPECT_EQ(stop, "-v");
  EXPECT_FALSE(is_verbose);
  EXPECT_EQ(threads, 2);
}

// The command lines that people bring with them, flag by flag.
TEST(FlagsOfOtherPrograms, AreAllKnown) {
  for (const char* flag : {"-t",
                           "-tb",
                           "-cb",
                           "-to",
                           "-v",
                           "-lv",
                           "-sm",
                           "-ts",
                           "-mg",
                           "-dev",
                           "-fit",
                           "--cache-prompt",
                           "--cache-reuse",
                           "--reasoning-budget",
                           "--no-slots",
                           "--props",
                           "--mlock",
                           "--no-mmap",
                           "--no-warmup",
                           "--timeout",
                           "--threads-http",
                           "--context-shift",
                           "--webui",
                           "--load-format",
                           "--nnodes",
                           "--tokenizer",
                           "--revision",
                           "--enforce-eager",
                           "--swap-space",
                           "--disable-log-requests",
                           "--max-logprobs",
                           "--guided-decoding-backend",
                           "--allowed-origins",
                           "--draft-model",
                           "--jinja",
                           "--metrics",
                           "--reasoning-parser",
                           "--enable-auto-tool-choice",
                           "--gpu-memory-utilization"}) {
    EXPECT_NE(find_flag_of_others(flag), nullptr) << flag;
  }
}

}  // namespace
}  // namespace inferno
