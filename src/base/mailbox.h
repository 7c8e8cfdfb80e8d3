// Messages from many threads to one: the only way into the engine's thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

namespace inferno {

template <class Message>
class Mailbox {
 public:
  // Any thread. False once the mailbox is closed; the message is then dropped.
  bool post(Message message) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return false;
      messages_.push_back(std::move(message));
    }
    arrived_.notify_one();
    return true;
  }

  // Any thread. Wakes the consumer; later posts are refused.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    arrived_.notify_one();
  }
  bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }

  // The consumer. All messages so far, oldest first; does not wait.
  std::vector<Message> drain() {
    const std::lock_guard lock(mutex_);
    return std::exchange(messages_, {});
  }
  // The consumer. Returns when there is a message or the mailbox is closed.
  void wait() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [this] { return closed_ || !messages_.empty(); });
  }
  // The same, but no longer than `patience`.
  void wait_for(std::chrono::microseconds patience) {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, patience, [this] { return closed_ || !messages_.empty(); });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Message> messages_;
  bool closed_ = false;
};

}  // namespace inferno
