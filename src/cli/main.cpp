// Parses the arguments, runs a command and turns exceptions into messages and exit codes.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iostream>
#include <span>
#include <string>
#include <string_view>

#include "base/current_error.h"
#include "cli/commands/shared/command_line.h"
#include "cli/commands/shared/licenses.h"
#include "cli/commit.h"
#include "cli/terminal/report_error.h"
#include "cli/terminal/screen.h"
#include "cli/terminal/streams.h"
#include "cli/version.h"

namespace {

using namespace inferno;

// `detail` is known before the arguments are parsed, because what is wrong may be an argument.
int report(const Error& error, Detail detail = Detail::brief) {
  say(describe(error, detail, terminal::line_columns(STDERR_FILENO)));
  return exit_code(error.kind());
}

Detail wanted_detail(std::span<char*> arguments) {
  return std::ranges::find(arguments, std::string_view("--verbose"),
                           [](const char* one) { return std::string_view(one); }) == arguments.end()
             ? Detail::brief
             : Detail::full;
}

// Fails if the result could not be written completely.
int flushed() {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout) return 0;
  return report(Error(ErrorKind::io, "could not write the output",
                      {.why = "the disk is full, or the reader closed the pipe", .next = {}}));
}

// A program that was started without standard streams gets /dev/null for them: an unread note must
// not end a command, and a file that it opens must not become its stderr.
void open_standard_streams() {
  for (const int number : {STDIN_FILENO, STDERR_FILENO}) {
    if (::fcntl(number, F_GETFD) != -1 || errno != EBADF) continue;
    const int null = ::open("/dev/null", number == STDIN_FILENO ? O_RDONLY : O_WRONLY);
    if (null == -1 || null == number) continue;
    ::dup2(null, number);
    ::close(null);
  }
}

// "inferno 0.1.0 (commit 59ca6961a6b2, Release, GNU 12.2.0); backends: cpu, cuda 13.0 for 90a"
std::string version_line() {
  std::string backends = "cpu";
  if (cuda_toolkit != 0) {
    backends +=
        fmt::format(", cuda {}.{} for {}", cuda_toolkit / 1000, cuda_toolkit % 1000 / 10, cuda_architectures);
  }
  return fmt::format("inferno {} ({}{}, {}); backends: {}", version,
                     commit.empty() ? "" : fmt::format("commit {}, ", commit), build_type, compiler,
                     backends);
}

// Longer lines are hard to read on a wide screen.
int help_columns() {
  constexpr int usual = 80, widest = 100;
  return terminal::is_terminal(STDOUT_FILENO) ? std::min(terminal::screen_size(STDOUT_FILENO).columns, widest)
                                              : usual;
}

int run(int argc, char** argv) {
  const Program program = {
      .name = "inferno",
      .version = version_line(),
      .licenses = licenses,
      .overview = {.description = "Inferno runs open language models on this machine.",
                   .groups = {{"Talk", {"play", "generate"}},
                              {"Find models", {"search", "plan", "download", "list", "rm", "verify"}},
                              {"Serve", {"serve", "health"}},
                              {"Measure", {"doctor", "bench", "perplexity"}}},
                   .rest = "Tools",
                   .examples = {{"inferno play", "talk with the built-in model, no download"},
                                {"inferno play qwen3:0.6b", "talk with a model from the hub"},
                                {"inferno serve qwen3:0.6b", "OpenAI's API on http://127.0.0.1:8000"}},
                   .last = "Start with: inferno play. Options of a command: inferno help COMMAND"},
      .columns = help_columns()};
  std::fputs(run_command_line(program, commands(), argc, argv).c_str(), stdout);
  return flushed();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    open_standard_streams();
    return run(argc, argv);
  } catch (const Exit& end) {
    return end.code;
  } catch (...) {
    return report(current_error(), wanted_detail({argv, static_cast<std::size_t>(argc)}));
  }
}
