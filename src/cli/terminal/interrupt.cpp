#include "cli/terminal/interrupt.h"

#include <unistd.h>

#include <atomic>

#include "base/error.h"

namespace inferno::terminal {
namespace {

// A signal handler can reach nothing else.
std::atomic<int> interrupts = 0;
std::atomic<bool> is_watched = false;
constexpr int too_many = 3;

void note(int) {
  if (interrupts.fetch_add(1) + 1 >= too_many) {
    ::signal(SIGINT, SIG_DFL);
    // Through a handler that gives the terminal back, where there is one.
    ::raise(SIGTERM);
  }
}

}  // namespace

Interrupt::Interrupt() {
  expects(!is_watched.exchange(true), "one watcher of interrupts at a time");
  interrupts = 0;
  struct sigaction action{};
  action.sa_handler = note;
  ::sigaction(SIGINT, &action, &before_);
}

Interrupt::~Interrupt() {
  ::sigaction(SIGINT, &before_, nullptr);
  is_watched = false;
}

bool Interrupt::came() const {
  return interrupts > 0;
}

void Interrupt::clear() {
  interrupts = 0;
}

}  // namespace inferno::terminal
