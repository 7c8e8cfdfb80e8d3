// When to try again: what servers ask for, and what is polite when they ask for nothing.
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

constexpr int max_tries = 8;                   // of one request
constexpr Milliseconds longest_wait{300'000};  // a server that asks for more is not waited for

// What Retry-After (seconds or a date) or RateLimit (t seconds) ask for; nullopt when they are absent or mean
// nothing. `now` is what dates are compared with.
std::optional<Milliseconds> asked_wait(const Headers& headers, std::chrono::system_clock::time_point now);

// 1, 2, 4 … 32 seconds after the first, second … failure, a quarter more or less: `luck` is in [0, 1).
Milliseconds backoff(int failures, double luck);
Milliseconds backoff(int failures);

// 408, 425, 429 and the server's own troubles: the same request may work later.
bool is_worth_another_try(int status);

// Waits that a host asked for bind every connection to it. Any thread.
class RateGate {
 public:
  explicit RateGate(double time_scale) : time_scale_(time_scale) {}

  // Nobody asks `origin` again before `wait` is over.
  void hold(const std::string& origin, Milliseconds wait);
  // Returns when `origin` may be asked; false when `is_cancelled` says so first.
  bool pass(const std::string& origin, const std::function<bool()>& is_cancelled);
  // Sleeps, scaled; false when cancelled.
  bool sleep(Milliseconds wait, const std::function<bool()>& is_cancelled) const;

 private:
  using Clock = std::chrono::steady_clock;
  Milliseconds scaled(Milliseconds wait) const;

  double time_scale_;
  std::mutex mutex_;
  std::map<std::string, Clock::time_point> not_before_;
};

}  // namespace inferno::hub
