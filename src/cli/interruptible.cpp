#include "cli/interruptible.h"

#include <signal.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "cli/command.h"

namespace inferno {
namespace {

constexpr std::array watched = {SIGINT, SIGTERM, SIGHUP};
constexpr std::chrono::milliseconds tick_time{100};
constexpr std::chrono::milliseconds grace{600};

// A signal handler can reach nothing else.
std::atomic<int> first_signal = 0;
std::atomic<bool> is_watched = false;
std::array<struct sigaction, watched.size()> before{};

void note(int number) {
  int none = 0;
  first_signal.compare_exchange_strong(none, number);
}

int exit_code_of(int signal) {
  return signal == SIGINT ? 130 : 143;
}

// What both threads know; the worker may outlive the caller when the process is about to end.
struct Shared {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;
  std::exception_ptr failure;
};

}  // namespace

StopSignals::StopSignals() {
  expects(!is_watched.exchange(true), "one watcher of signals at a time");
  first_signal = 0;
  for (std::size_t at = 0; at < watched.size(); ++at) {
    struct sigaction action{};
    action.sa_handler = note;
    ::sigaction(watched[at], &action, &before[at]);
  }
}

StopSignals::~StopSignals() {
  for (std::size_t at = 0; at < watched.size(); ++at) ::sigaction(watched[at], &before[at], nullptr);
  is_watched = false;
}

int StopSignals::came() {
  return first_signal;
}

void run_interruptibly(const std::function<void()>& work, const std::function<void()>& tick,
                       const std::function<void()>& stopped) {
  const auto shared = std::make_shared<Shared>();
  std::thread worker([shared, &work] {
    std::exception_ptr failure;
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(shared->mutex);
    shared->failure = failure;
    shared->is_done = true;
    shared->changed.notify_all();
  });
  // Whoever watched may be gone; what is being fetched is worth more than what is shown of it.
  const auto show = [](const std::function<void()>& something) {
    try {
      something();
      return true;
    } catch (...) {
      return false;
    }
  };
  bool is_shown = true;
  std::unique_lock lock(shared->mutex);
  while (!shared->is_done && StopSignals::came() == 0) {
    shared->changed.wait_for(lock, tick_time);
    lock.unlock();
    is_shown = is_shown && show(tick);
    lock.lock();
  }
  if (const int signal = StopSignals::came()) {
    const bool ended = shared->changed.wait_for(lock, grace, [&] { return shared->is_done; });
    lock.unlock();
    show(stopped);
    if (ended) {
      worker.join();
      throw CLI::RuntimeError(exit_code_of(signal));
    }
    std::fflush(nullptr);
    std::_Exit(exit_code_of(signal));  // the system closes files and releases locks
  }
  lock.unlock();
  worker.join();
  if (shared->failure) std::rethrow_exception(shared->failure);
}

}  // namespace inferno
