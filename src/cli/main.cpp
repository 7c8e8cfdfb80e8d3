// Parses the arguments, runs a command and turns exceptions into messages and exit codes.
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <system_error>

#include "cli/commands/command.h"
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
  CLI::App app("Inferno runs open language models on this machine.", "inferno");
  app.set_version_flag("--version", std::string(version));
  app.require_subcommand(0, 1);
  for (const AddCommand add : commands()) add(app);
  try {
    app.parse(argc, argv);
  } catch (const Exit& end) {
    return end.code;
  } catch (const CLI::ParseError& error) {
    // --help and --version arrive here too, with exit code 0.
    if (error.get_exit_code() == 0) {
      app.exit(error);
      return flushed();
    }
    const std::string name =
        app.get_subcommands().empty() ? "" : app.get_subcommands().front()->get_name() + " ";
    return report(
        Error(ErrorKind::invalid_request, error.what(), {.why = {}, .next = "inferno " + name + "--help"}));
  }
  if (app.get_subcommands().empty()) std::fputs(app.help().c_str(), stdout);
  return flushed();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
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
