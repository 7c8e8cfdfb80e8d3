// How a failure reaches the person at the terminal: three lines on stderr and an exit code.
#pragma once

#include <string>

#include "base/error.h"

namespace inferno {

// The one table of exit codes; docs/commands.md repeats it for readers.
int exit_code(ErrorKind kind);

// "error: …", then "why: …" and "next: …" where they add something. Control characters that a file or a
// model smuggled into a message are shown escaped, so that they cannot drive the terminal.
std::string describe(const Error& error);

}  // namespace inferno
