// The events of one request, from the engine's thread to the thread that submitted it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "engine/request.h"

namespace inferno {

class TokenStream {
 public:
  // `wake` is called on the engine's thread once for each event, so that a reader without a thread of its own
  // can be woken.
  explicit TokenStream(int choices = 1, std::function<void()> wake = {})
      : wake_(std::move(wake)), open_(choices), cancelled_choices_(static_cast<std::size_t>(choices)) {}

  // Consumer. Waits for the next event. nullopt if `patience` runs out first, or immediately after the last
  // event (Failed, or the Finished of the last choice) was taken.
  std::optional<Event> next(std::chrono::milliseconds patience);
  // Any thread. Takes effect before the next step; the stream then ends with FinishReason::cancelled.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  // The same for one choice, once it has a token: the others go on.
  void cancel(int choice) {
    cancelled_choices_.at(static_cast<std::size_t>(choice)).store(true, std::memory_order_relaxed);
    has_cancelled_choices_.store(true, std::memory_order_relaxed);
  }

  // Producer: the engine thread only. Never blocks, so a slow reader cannot stall the batch. Events after the
  // last one are dropped.
  void publish(Event event) {
    if (push(std::move(event))) wake();
  }
  // The two halves of publish(). False if the event was dropped.
  bool push(Event event);
  void wake();
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  bool has_cancelled_choices() const { return has_cancelled_choices_.load(std::memory_order_relaxed); }
  bool cancelled(int choice) const {
    return cancelled_choices_.at(static_cast<std::size_t>(choice)).load(std::memory_order_relaxed);
  }

 private:
  const std::function<void()> wake_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Event> events_;
  int open_;  // choices that have not ended
  std::atomic<bool> cancelled_ = false, has_cancelled_choices_ = false;
  std::vector<std::atomic<bool>> cancelled_choices_;
};

}  // namespace inferno
