// Scripts with which a shell completes commands, options and their values.
#pragma once

#include <string>
#include <vector>

#include "cli/commands/shared/command_line.h"

namespace inferno::completion {

std::string for_bash(const std::vector<CommandDescription>& commands);
std::string for_zsh(const std::vector<CommandDescription>& commands);
std::string for_fish(const std::vector<CommandDescription>& commands);

}  // namespace inferno::completion
