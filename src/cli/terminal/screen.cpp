#include "cli/terminal/screen.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <string_view>

#include "base/error.h"

namespace inferno::terminal {
namespace {

constexpr std::string_view paste_on = "\x1b[?2004h", paste_off = "\x1b[?2004l";
// The signals that end a process by default and can be caught.
constexpr std::array deadly = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

// Global because the signal handlers below restore the terminal from it; written before they are installed.
struct Original {
  std::atomic<bool> active = false;
  int input = -1, output = -1;
  termios settings{};
  std::array<struct sigaction, deadly.size()> actions{};
};
Original original;

// A pipe that the signal handler writes to, because a wait for keys must end however closely before it the
// signal came. Any thread may receive the signal.
struct ResizePipe {
  int reading = -1, writing = -1;
  struct sigaction previous{};
};
ResizePipe resize_pipe;

void note_resize(int) {
  const int problem = errno;
  // A full pipe is readable already.
  [[maybe_unused]] const ssize_t count = ::write(resize_pipe.writing, "r", 1);
  errno = problem;
}

void watch_resizes() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) fail(ErrorKind::io, "cannot open a pipe");
  resize_pipe.reading = ends[0];
  resize_pipe.writing = ends[1];
  struct sigaction action{};
  action.sa_handler = note_resize;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGWINCH, &action, &resize_pipe.previous);
}

void stop_watching_resizes() {
  ::sigaction(SIGWINCH, &resize_pipe.previous, nullptr);
  ::close(resize_pipe.reading);
  ::close(resize_pipe.writing);
}

void write_sequence(std::string_view sequence) {
  // A signal handler cannot report a failure.
  [[maybe_unused]] const ssize_t count = ::write(original.output, sequence.data(), sequence.size());
}

void restore() {
  write_sequence(paste_off);
  ::tcsetattr(original.input, TCSADRAIN, &original.settings);
}

// Global for the handler of Ctrl-Z; written before it is installed.
struct Hidden {
  std::atomic<bool> active = false;
  int terminal = -1;
  termios settings{};
  struct sigaction previous{};
};
Hidden hidden;

bool is_in_foreground(int terminal) {
  return ::tcgetpgrp(terminal) == ::getpgrp();
}

void show_typing() {
  if (hidden.active.exchange(false) && is_in_foreground(hidden.terminal))
    ::tcsetattr(hidden.terminal, TCSADRAIN, &hidden.settings);
}

void show_typing_and_stop(int) {
  const int problem = errno;
  show_typing();
  ::raise(SIGSTOP);
  errno = problem;
}

void restore_and_die(int signal) {
  if (original.active.exchange(false)) {
    write_sequence("\x1b[0m");
    restore();
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

int line_columns(int file) {
  return is_terminal(file) ? screen_size(file).columns : 0;
}

TerminalMode::TerminalMode(int input, int output) {
  expects(!original.active, "one terminal mode at a time");
  original.input = input;
  original.output = output;
  if (::tcgetattr(input, &original.settings) != 0) {
    fail(ErrorKind::io, "cannot read the terminal settings");
  }
  watch_resizes();
  original.active = true;
  struct sigaction action{};
  action.sa_handler = restore_and_die;
  for (std::size_t at = 0; at < deadly.size(); ++at) {
    ::sigaction(deadly[at], &action, &original.actions[at]);
  }
}

TerminalMode::~TerminalMode() {
  set(Mode::original);
  original.active = false;
  stop_watching_resizes();
  for (std::size_t at = 0; at < deadly.size(); ++at) ::sigaction(deadly[at], &original.actions[at], nullptr);
}

void TerminalMode::set(Mode mode) {
  if (mode == mode_) return;
  mode_ = mode;
  if (mode == Mode::original) {
    restore();
    return;
  }
  termios settings = original.settings;
  settings.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | IEXTEN);
  settings.c_cc[VMIN] = 1;
  settings.c_cc[VTIME] = 0;
  if (mode == Mode::keys) {
    settings.c_lflag &= ~static_cast<tcflag_t>(ISIG);
    settings.c_iflag &= ~static_cast<tcflag_t>(IXON | ICRNL | INLCR);
  } else {
    // Ctrl-Z during an answer would leave the shell with these settings.
    settings.c_cc[VSUSP] = _POSIX_VDISABLE;
  }
  // TCSADRAIN rather than TCSAFLUSH keeps what was typed ahead.
  ::tcsetattr(original.input, TCSADRAIN, &settings);
  write_sequence(mode == Mode::keys ? paste_on : paste_off);
}

HiddenTyping::HiddenTyping(int terminal) {
  hidden.terminal = terminal;
  struct sigaction action{};
  action.sa_handler = show_typing_and_stop;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTSTP, &action, &hidden.previous);
  renew();
}

HiddenTyping::~HiddenTyping() {
  show_typing();
  ::sigaction(SIGTSTP, &hidden.previous, nullptr);
}

void HiddenTyping::renew() {
  if (hidden.active || !is_in_foreground(hidden.terminal)) return;
  if (::tcgetattr(hidden.terminal, &hidden.settings) != 0) return;
  termios settings = hidden.settings;
  settings.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  hidden.active = ::tcsetattr(hidden.terminal, TCSADRAIN, &settings) == 0;
}

int TerminalMode::resize_file() const {
  return resize_pipe.reading;
}

void TerminalMode::take_resize() {
  std::array<char, 64> bytes{};
  while (::read(resize_pipe.reading, bytes.data(), bytes.size()) > 0) {}
}

void TerminalMode::suspend() {
  set(Mode::original);
  ::kill(0, SIGTSTP);
  set(Mode::keys);
}

}  // namespace inferno::terminal
