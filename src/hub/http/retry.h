// When to try again: after the wait that a server asks for, otherwise with exponential backoff.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "hub/http/message.h"

namespace inferno::hub {

using Milliseconds = std::chrono::milliseconds;

constexpr int max_tries = 8;               // per request
constexpr Milliseconds max_wait{300'000};  // a server that asks for a longer wait is an error

// The wait in Retry-After (seconds or a date) or RateLimit (t seconds); nullopt if both are absent or
// invalid. Dates are relative to `now`.
std::optional<Milliseconds> requested_wait(const Headers& headers, std::chrono::system_clock::time_point now);

// 1, 2, 4 … 32 seconds after the first, second … failure, with a jitter of ±25 %: `luck` is in [0, 1).
Milliseconds backoff(int failures, double luck);
Milliseconds backoff(int failures);

// 408, 425, 429 and server errors: the same request may succeed later.
bool is_retryable(int status);

// A wait that a host asks for applies to all connections to it. Any thread.
class RateGate {
 public:
  explicit RateGate(double time_scale) : time_scale_(time_scale) {}

  // Holds all requests to `origin` until `wait` is over.
  void hold(const std::string& origin, Milliseconds wait);
  // Returns when a request to `origin` may be sent; false if cancelled first.
  bool pass(const std::string& origin, const std::function<bool()>& is_cancelled);
  // Sleeps for the scaled time; false if cancelled.
  bool sleep(Milliseconds wait, const std::function<bool()>& is_cancelled) const;

 private:
  using Clock = std::chrono::steady_clock;
  Milliseconds scaled(Milliseconds wait) const;

  double time_scale_;
  std::mutex mutex_;
  std::map<std::string, Clock::time_point> not_before_;
};

}  // namespace inferno::hub
