// The pages of `inferno` and `inferno COMMAND --help`, broken at word borders.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/shared/description.h"

namespace inferno {

// `usage` is the command with its program, "inferno play"; `afterwards` follows the options, empty for
// nothing.
std::string help_page(const CommandDescription& command, std::string_view usage, std::string_view afterwards,
                      int columns);

struct CommandGroup {
  std::string heading;
  std::vector<std::string> commands;
};

struct Example {
  std::string command, meaning;
};

struct Overview {
  std::string description;
  std::vector<CommandGroup> groups = {};  // what one wants to do
  std::string rest = "Commands";          // the heading of commands that are in no group
  std::vector<Example> examples = {};
  std::string last = {};  // what to do next
};

std::string overview_page(const Overview& overview, const std::vector<CommandDescription>& commands,
                          int columns);

}  // namespace inferno
