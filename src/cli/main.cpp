// Arguments in, one try/catch, exit codes out.
#include <cstdio>
#include <exception>
#include <new>

#include "cli/command.h"
#include "cli/report_error.h"
#include "cli/version.h"

namespace {

using namespace inferno;

int report(const Error& error) {
  std::fputs(describe(error).c_str(), stderr);
  return exit_code(error.kind());
}

int run(int argc, char** argv) {
  CLI::App app("Inferno runs open language models on this machine.", "inferno");
  app.set_version_flag("--version", std::string(version));
  app.require_subcommand(1);
  for (const AddCommand add : commands()) add(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version leave through here too, with code 0; everything else is the caller's mistake.
    return app.exit(error) == 0 ? 0 : exit_code(ErrorKind::invalid_request);
  }
  return 0;
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
  } catch (const std::exception& error) {
    return report(Error(ErrorKind::internal, error.what()));
  }
}
