#include "cli/terminal/write_out.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

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
