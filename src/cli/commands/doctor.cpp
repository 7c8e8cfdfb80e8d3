#include <cstdio>

#include "cli/command.h"

namespace inferno::command {

void doctor(CLI::App& app) {
  CLI::App* command = app.add_subcommand("doctor", "Check this machine");
  command->callback([] { std::puts("ok"); });
}

}  // namespace inferno::command
