#include "base/signals.h"

#include <atomic>

#include "base/error.h"

namespace inferno {
namespace {

constexpr int max_ignored_interrupts = 3;

// A signal handler can only reach globals, and these must be lock-free.
std::atomic<int> first_signal = 0;
std::atomic<int> interrupts = 0;
std::atomic<bool> is_watched = false;
std::atomic<bool> watches_sigterm = false;
struct sigaction sigterm_before;  // written before watches_sigterm is set, then constant
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void record(int number) {
  int none = 0;
  first_signal.compare_exchange_strong(none, number);
  if (number != SIGINT || interrupts.fetch_add(1) + 1 < max_ignored_interrupts) return;
  ::signal(SIGINT, SIG_DFL);
  // SIGTERM rather than SIGINT: its handler, if there is one, restores the terminal first.
  if (watches_sigterm) ::sigaction(SIGTERM, &sigterm_before, nullptr);
  ::raise(SIGTERM);
}

}  // namespace

SignalWatcher::SignalWatcher(std::span<const int> signals) {
  expects(!is_watched.exchange(true), "one signal watcher at a time");
  clear();
  for (const int number : signals) {
    struct sigaction action{}, before{};
    action.sa_handler = record;
    ::sigaction(number, &action, &before);
    previous_.emplace_back(number, before);
    if (number != SIGTERM) continue;
    sigterm_before = before;
    watches_sigterm = true;
  }
}

SignalWatcher::~SignalWatcher() {
  for (const auto& [number, action] : previous_) ::sigaction(number, &action, nullptr);
  watches_sigterm = false;
  is_watched = false;
}

int SignalWatcher::received() {
  return first_signal;
}

void SignalWatcher::clear() {
  first_signal = 0;
  interrupts = 0;
}

}  // namespace inferno
