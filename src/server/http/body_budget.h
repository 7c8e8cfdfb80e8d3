// Bounds the memory that the bodies of all requests take together, from their first byte until they were
// parsed: without it, many connections could each send a body of the largest size.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace inferno::server {

// Thread-safe.
class BodyBudget {
 public:
  explicit BodyBudget(std::size_t bytes) : left_(bytes) {}

  bool has(std::size_t bytes) const { return bytes <= left_.load(); }
  // False, and nothing is taken, if less is left.
  bool take(std::size_t bytes) {
    std::size_t left = left_.load();
    while (bytes <= left) {
      if (left_.compare_exchange_weak(left, left - bytes)) return true;
    }
    return false;
  }
  void give_back(std::size_t bytes) { left_.fetch_add(bytes); }

 private:
  std::atomic<std::size_t> left_;
};

// What one body takes of the budget; its destructor gives that back. Used by one thread at a time.
class BodyShare {
 public:
  // The first bytes of each body do not count, so that small requests are read however many large ones there
  // are.
  static constexpr std::size_t uncounted = std::size_t{64} << 10;

  explicit BodyShare(std::shared_ptr<BodyBudget> budget) : budget_(std::move(budget)) {}
  ~BodyShare() { budget_->give_back(taken_); }
  BodyShare(const BodyShare&) = delete;
  BodyShare& operator=(const BodyShare&) = delete;

  static std::size_t counted(std::size_t body_bytes) {
    return body_bytes > uncounted ? body_bytes - uncounted : 0;
  }
  // False if the budget has no room for a body of this size.
  bool grow_to(std::size_t body_bytes) {
    const std::size_t wanted = counted(body_bytes);
    if (wanted <= taken_) return true;
    if (!budget_->take(wanted - taken_)) return false;
    taken_ = wanted;
    return true;
  }

 private:
  const std::shared_ptr<BodyBudget> budget_;
  std::size_t taken_ = 0;
};

}  // namespace inferno::server
