// The events of one request, from the engine's thread to the thread that submitted it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>

#include "engine/request.h"

namespace inferno {

class TokenStream {
 public:
  explicit TokenStream(int choices = 1) : open_(choices) {}

  // Consumer. Waits for the next event. nullopt if `patience` runs out first, or immediately after the last
  // event (Failed, or the Finished of the last choice) was taken.
  std::optional<Event> next(std::chrono::milliseconds patience);
  // Any thread. Takes effect before the next step; the stream then ends with FinishReason::cancelled.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  // `wake` is called on the engine's thread after each event, so that a reader without a thread of its own
  // can be woken, and immediately if events are waiting. It must not block. Set it before the first next().
  void on_event(std::function<void()> wake);

  // Producer: the engine thread only. Never blocks, so a slow reader cannot stall the batch. Events after the
  // last one are dropped.
  void publish(Event event);
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Event> events_;
  std::function<void()> wake_;
  int open_;  // choices that have not ended
  std::atomic<bool> cancelled_ = false;
};

}  // namespace inferno
