#include "cli/play/external_editor.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "base/error.h"
#include "base/file.h"

namespace inferno::play {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t max_message = std::uint64_t{64} << 20;
constexpr int not_found_by_shell = 127;

// A folder for one file, removed with everything in it.
class PrivateFolder {
 public:
  explicit PrivateFolder(const fs::path& parent) {
    std::string pattern = (parent / "inferno-message-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr)
      fail(ErrorKind::io, fmt::format("{}: cannot make a folder: {}", parent.string(), std::strerror(errno)),
           {.why = {}, .next = "TMPDIR names another folder for temporary files"});
    path_ = pattern;
  }
  ~PrivateFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// Ctrl-C and Ctrl-\ are the editor's keys while it runs.
class IgnoredKeys {
 public:
  IgnoredKeys() {
    struct sigaction ignore{};
    ignore.sa_handler = SIG_IGN;
    for (std::size_t at = 0; at < signals.size(); ++at) ::sigaction(signals[at], &ignore, &previous_[at]);
  }
  ~IgnoredKeys() {
    for (std::size_t at = 0; at < signals.size(); ++at) ::sigaction(signals[at], &previous_[at], nullptr);
  }
  IgnoredKeys(const IgnoredKeys&) = delete;
  IgnoredKeys& operator=(const IgnoredKeys&) = delete;

 private:
  static constexpr std::array signals = {SIGINT, SIGQUIT};
  std::array<struct sigaction, signals.size()> previous_{};
};

// Returns the status that waitpid() reports.
int run_editor(const std::string& command, const fs::path& file) {
  const std::string script = command + " \"$1\"";
  std::string path = file.string();
  std::array<char*, 6> arguments = {const_cast<char*>("sh"),
                                    const_cast<char*>("-c"),
                                    const_cast<char*>(script.data()),
                                    const_cast<char*>("sh"),
                                    path.data(),
                                    nullptr};
  sigset_t defaults;
  sigemptyset(&defaults);
  for (const int signal : {SIGINT, SIGQUIT, SIGPIPE, SIGWINCH}) sigaddset(&defaults, signal);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const IgnoredKeys ignored;
  pid_t child = 0;
  const int problem = ::posix_spawn(&child, "/bin/sh", nullptr, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (problem != 0)
    fail(ErrorKind::io, fmt::format("/bin/sh: cannot be started: {}", std::strerror(problem)));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return status;
}

}  // namespace

std::string edit_text(const std::string& command, const std::string& text, const fs::path& temporary) {
  const PrivateFolder folder(temporary);
  const fs::path file = folder.path() / "message.md";
  write_file(file, text.empty() ? text : text + "\n", Readers::owner);
  const int status = run_editor(command, file);
  const std::string next = "set VISUAL or EDITOR to an editor; the message was not sent";
  if (WIFEXITED(status) && WEXITSTATUS(status) == not_found_by_shell)
    fail(ErrorKind::io, fmt::format("{}: the editor cannot be started", command), {.why = {}, .next = next});
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fail(ErrorKind::io,
         WIFEXITED(status)
             ? fmt::format("{}: the editor ended with exit code {}", command, WEXITSTATUS(status))
             : fmt::format("{}: the editor was ended by signal {}", command, WTERMSIG(status)),
         {.why = {}, .next = "the message was not sent; /edit starts again"});
  }
  std::string edited = read_file(file, max_message);
  while (edited.ends_with('\n')) edited.pop_back();
  return edited;
}

}  // namespace inferno::play
