#include "cli/terminal/screen.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string_view>

#include "base/error.h"

namespace inferno::terminal {
namespace {

constexpr std::string_view paste_on = "\x1b[?2004h", paste_off = "\x1b[?2004l";
// What ends a process without asking it, as far as it can be caught.
constexpr std::array deadly = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

// Global because the signal handlers below restore the terminal from it; written before they are installed.
struct Found {
  std::atomic<bool> active = false;
  int input = -1, output = -1;
  termios settings{};
  std::array<struct sigaction, deadly.size()> actions{};
};
Found found;

void write_sequence(std::string_view sequence) {
  // Nothing could be done about a failure, also in a handler.
  [[maybe_unused]] const ssize_t count = ::write(found.output, sequence.data(), sequence.size());
}

void give_back() {
  write_sequence(paste_off);
  ::tcsetattr(found.input, TCSADRAIN, &found.settings);
}

void restore_and_die(int signal) {
  if (found.active.exchange(false)) {
    write_sequence("\x1b[0m");
    give_back();
  }
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

bool is_terminal(int file) {
  return ::isatty(file) == 1;
}

ScreenSize screen_size(int file) {
  winsize size{};
  const ScreenSize standard;
  if (::ioctl(file, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return standard;
  return {.columns = size.ws_col, .rows = size.ws_row};
}

TerminalMode::TerminalMode(int input, int output) {
  expects(!found.active, "one terminal mode at a time");
  found.input = input;
  found.output = output;
  if (::tcgetattr(input, &found.settings) != 0) {
    fail(ErrorKind::io, "the terminal does not tell its settings");
  }
  found.active = true;
  struct sigaction action{};
  action.sa_handler = restore_and_die;
  for (std::size_t at = 0; at < deadly.size(); ++at) {
    ::sigaction(deadly[at], &action, &found.actions[at]);
  }
}

TerminalMode::~TerminalMode() {
  set(Mode::as_found);
  found.active = false;
  for (std::size_t at = 0; at < deadly.size(); ++at) ::sigaction(deadly[at], &found.actions[at], nullptr);
}

void TerminalMode::set(Mode mode) {
  if (mode == mode_) return;
  mode_ = mode;
  if (mode == Mode::as_found) {
    give_back();
    return;
  }
  termios settings = found.settings;
  settings.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | IEXTEN);
  settings.c_cc[VMIN] = 1;
  settings.c_cc[VTIME] = 0;
  if (mode == Mode::keys) {
    settings.c_lflag &= ~static_cast<tcflag_t>(ISIG);
    settings.c_iflag &= ~static_cast<tcflag_t>(IXON | ICRNL | INLCR);
  } else {
    // Stopping in the middle of an answer would leave the shell with our settings.
    settings.c_cc[VSUSP] = _POSIX_VDISABLE;
  }
  // Without flushing: what is typed ahead is kept.
  ::tcsetattr(found.input, TCSADRAIN, &settings);
  write_sequence(mode == Mode::keys ? paste_on : paste_off);
}

void TerminalMode::suspend() {
  set(Mode::as_found);
  ::kill(0, SIGTSTP);
  set(Mode::keys);
}

}  // namespace inferno::terminal
