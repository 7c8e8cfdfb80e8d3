// A question to the person at the terminal.
#pragma once

#include <optional>
#include <string>

namespace inferno {

// Asks on stderr and reads a line of stdin: true for "y" or "yes". Nothing, or the end of input, means no.
// nullopt when stdin or stderr is no terminal: then nobody is there to be asked.
std::optional<bool> ask_yes(const std::string& question);

}  // namespace inferno
