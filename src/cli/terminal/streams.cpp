#include "cli/terminal/streams.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
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

void LineWriter::write(std::string_view line) {
  const std::lock_guard lock(mutex_);
  if (dropped_ > 0 && !try_write(fmt::format("{} lines of the log were dropped\n", dropped_))) {
    ++dropped_;
    return;
  }
  dropped_ = try_write(line) ? 0 : 1;
}

bool LineWriter::try_write(std::string_view line) const {
  pollfd waiting = {.fd = file_, .events = POLLOUT, .revents = 0};
  if (::poll(&waiting, 1, 0) != 1 || (waiting.revents & POLLOUT) == 0) return false;
  // A pipe that has room takes this many bytes without waiting.
  line = line.substr(0, PIPE_BUF);
  return ::write(file_, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

void ignore_closed_pipes() {
  ::signal(SIGPIPE, SIG_IGN);
}

}  // namespace inferno::terminal

namespace inferno {

void say(std::string_view text) {
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
  (void)std::fflush(stderr);
}

std::string read_standard_input(std::uint64_t max_bytes, const InputCallbacks& callbacks) {
  constexpr int patience_ms = 2000;
  std::string text;
  std::array<char, 1 << 16> buffer{};
  bool is_told = !callbacks.waiting;
  while (true) {
    pollfd waiting = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (!is_told && ::poll(&waiting, 1, patience_ms) == 0) {
      is_told = true;
      callbacks.waiting();
    }
    const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count == 0) return text;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      fail(ErrorKind::io, fmt::format("standard input: reading failed: {}", std::strerror(errno)));
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.size() > max_bytes) {
      fail(ErrorKind::unsupported,
           fmt::format("standard input: larger than the limit of {} bytes", max_bytes));
    }
    if (callbacks.received) callbacks.received(text.size());
  }
}

bool can_ask() {
  return terminal::is_terminal(STDIN_FILENO) && terminal::is_terminal(STDERR_FILENO);
}

std::optional<bool> ask_yes(const std::string& question) {
  if (!can_ask()) return std::nullopt;
  say(fmt::format("{} [y/N] ", printable(question)));
  std::string answer;
  if (!std::getline(std::cin, answer)) {
    say("\n");
    return false;
  }
  answer = lower_case(answer);
  return answer == "y" || answer == "yes";
}

}  // namespace inferno
