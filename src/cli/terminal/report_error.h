// How a command ends: its exit code and, after a failure, up to three lines on stderr.
#pragma once

#include <string>

#include "base/error.h"

namespace inferno {

// Thrown to end a command with this exit code when there is no error to report, for example after Ctrl-C.
struct Exit {
  int code = 0;
};

inline constexpr int interrupted_code = 130;  // 128 + SIGINT, as a shell reports it

// The table of exit codes that docs/commands.md documents.
int exit_code(ErrorKind kind);

// How much of a long message is shown: what --verbose asks for, or three lines that a screen holds.
enum class Detail { brief, full };

// "error: …", then "why: …" and "next: …" unless they are empty, each on one line. Control characters are
// escaped: names of files and models are part of messages and must not control the terminal. On a screen of
// some `columns`, lines are broken between words; 0 breaks none.
std::string describe(const Error& error, Detail detail = Detail::brief, int columns = 0);

}  // namespace inferno
