#include "cli/terminal/streams.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/terminal/screen.h"

namespace inferno::terminal {

bool write_out(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN) {
      pollfd waiting = {.fd = file, .events = POLLOUT, .revents = 0};
      ::poll(&waiting, 1, -1);
      continue;
    }
    if (errno == EPIPE || (errno == EIO && ::isatty(file) == 1)) return false;
    fail(ErrorKind::io, fmt::format("cannot write the result: {}", std::strerror(errno)));
  }
  return true;
}

void ignore_closed_pipes() {
  ::signal(SIGPIPE, SIG_IGN);
}

}  // namespace inferno::terminal

namespace inferno {

std::string read_standard_input() {
  std::string text;
  std::array<char, 1 << 16> buffer{};
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), stdin))
    text.append(buffer.data(), count);
  if (std::ferror(stdin) != 0) fail(ErrorKind::io, "standard input: reading failed");
  return text;
}

std::optional<bool> ask_yes(const std::string& question) {
  if (!terminal::is_terminal(STDIN_FILENO) || !terminal::is_terminal(STDERR_FILENO)) return std::nullopt;
  fmt::print(stderr, "{} [y/N] ", printable(question));
  std::fflush(stderr);
  std::string answer;
  if (!std::getline(std::cin, answer)) {
    fmt::print(stderr, "\n");
    return false;
  }
  answer = lower_case(answer);
  return answer == "y" || answer == "yes";
}

}  // namespace inferno
