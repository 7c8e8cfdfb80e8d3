// Parses the arguments, runs a command and turns exceptions into messages and exit codes.
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <system_error>

#include "cli/commands/shared/command_line.h"
#include "cli/terminal/report_error.h"
#include "cli/version.h"

namespace {

using namespace inferno;

int report(const Error& error) {
  std::fputs(describe(error).c_str(), stderr);
  return exit_code(error.kind());
}

// Fails if the result could not be written completely.
int flushed() {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout) return 0;
  return report(Error(ErrorKind::io, "standard output: cannot write the whole result",
                      {.why = "the disk is full, or the reader closed the pipe", .next = {}}));
}

int run(int argc, char** argv) {
  const Program program = {.name = "inferno",
                           .description = "Inferno runs open language models on this machine.",
                           .version = std::string(version)};
  std::fputs(run_command_line(program, commands(), argc, argv).c_str(), stdout);
  return flushed();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const Exit& end) {
    return end.code;
  } catch (const Error& error) {
    return report(error);
  } catch (const std::bad_alloc&) {
    return report(Error(ErrorKind::io, "out of memory",
                        {.why = {}, .next = "free some memory, or choose a smaller model"}));
  } catch (const std::system_error& error) {
    return report(Error(ErrorKind::io, error.what()));
  } catch (const std::exception& error) {
    return report(Error(ErrorKind::internal, error.what()));
  }
}
