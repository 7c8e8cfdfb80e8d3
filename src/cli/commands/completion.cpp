// `inferno completion`: a script with which a shell completes the command line.
#include "cli/completion/completion.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "cli/commands/shared/command_line.h"

namespace inferno::command {

void completion(CommandLine app) {
  const Command command =
      app.command("completion", "Print a script with which a shell completes command lines");
  const auto shell = std::make_shared<std::string>();
  command.option("SHELL", *shell, "bash, zsh or fish").required().one_of({"bash", "zsh", "fish"});
  command.run([shell] {
    const auto all = describe(commands());
    if (*shell == "bash") fmt::print("{}", inferno::completion::for_bash(all));
    if (*shell == "zsh") fmt::print("{}", inferno::completion::for_zsh(all));
    if (*shell == "fish") fmt::print("{}", inferno::completion::for_fish(all));
  });
}

}  // namespace inferno::command
