#include "cli/download/interruptible.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "cli/terminal/report_error.h"

namespace inferno {
namespace {

constexpr std::chrono::milliseconds tick_time{100};
constexpr std::chrono::milliseconds grace{600};

int exit_code_of(int signal) {
  return signal == SIGINT ? interrupted_code : 143;
}

// Shared with the worker thread, which may outlive the caller when the process is about to end.
struct Shared {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;
  std::exception_ptr failure;
};

}  // namespace

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
  // A display that fails, for example on a closed terminal, must not stop the download.
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
  while (!shared->is_done && SignalWatcher::received() == 0) {
    shared->changed.wait_for(lock, tick_time);
    lock.unlock();
    is_shown = is_shown && show(tick);
    lock.lock();
  }
  if (const int signal = SignalWatcher::received()) {
    const bool ended = shared->changed.wait_for(lock, grace, [&] { return shared->is_done; });
    lock.unlock();
    show(stopped);
    if (ended) {
      worker.join();
      throw Exit{exit_code_of(signal)};
    }
    std::fflush(nullptr);
    std::_Exit(exit_code_of(signal));  // the system closes files and releases locks
  }
  lock.unlock();
  worker.join();
  if (shared->failure) std::rethrow_exception(shared->failure);
}

}  // namespace inferno
