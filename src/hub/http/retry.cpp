#include "hub/http/retry.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>
#include <thread>

#include "hub/http/curl_library.h"

namespace inferno::hub {
namespace {

constexpr Milliseconds slice{50};  // the longest time a cancellation goes unnoticed

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  // Out of range means a very long wait.
  if (problem == std::errc::result_out_of_range && !text.starts_with('-')) return std::int64_t{1} << 32;
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return std::min(value, std::int64_t{1} << 32);
}

// RateLimit: "resolvers";r=0;t=55
std::optional<std::int64_t> rate_limit_seconds(const std::string& value) {
  const std::size_t at = value.find(";t=");
  if (at == std::string::npos) return std::nullopt;
  const std::string_view rest = std::string_view(value).substr(at + 3);
  return whole_number(rest.substr(0, rest.find_first_not_of("0123456789")));
}

}  // namespace

std::optional<Milliseconds> requested_wait(const Headers& headers,
                                           std::chrono::system_clock::time_point now) {
  const std::string& value = headers["retry-after"];
  if (const auto seconds = whole_number(value)) {
    if (*seconds >= 0) return std::chrono::seconds(*seconds);
  } else if (!value.empty()) {
    const std::time_t date = curl().getdate(value.c_str(), nullptr);
    const auto at = std::chrono::system_clock::from_time_t(date);
    // A date has whole seconds, so the wait ends when the next second begins.
    if (date != -1 && at + std::chrono::seconds(1) > now) {
      return std::chrono::duration_cast<Milliseconds>(at + std::chrono::seconds(1) - now);
    }
  }
  if (const auto seconds = rate_limit_seconds(headers["ratelimit"]))
    return std::chrono::seconds(*seconds + 1);
  return std::nullopt;
}

Milliseconds backoff(int failures, double luck) {
  const double seconds = std::ldexp(1.0, std::clamp(failures - 1, 0, 5));
  return Milliseconds(std::lround(1000 * seconds * (0.75 + 0.5 * luck)));
}

Milliseconds backoff(int failures) {
  thread_local std::minstd_rand random(std::random_device{}());
  return backoff(failures, std::uniform_real_distribution<double>(0, 1)(random));
}

bool is_retryable(int status) {
  return status == 408 || status == 425 || status == 429 || (status >= 500 && status != 501 && status != 505);
}

Milliseconds RateGate::scaled(Milliseconds wait) const {
  return Milliseconds(static_cast<std::int64_t>(std::ceil(static_cast<double>(wait.count()) * time_scale_)));
}

void RateGate::hold(const std::string& origin, Milliseconds wait) {
  const std::lock_guard lock(mutex_);
  auto& until = not_before_[origin];
  until = std::max(until, Clock::now() + scaled(wait));
}

bool RateGate::pass(const std::string& origin, const std::function<bool()>& is_cancelled) {
  while (true) {
    if (is_cancelled && is_cancelled()) return false;
    Clock::time_point until;
    {
      const std::lock_guard lock(mutex_);
      const auto found = not_before_.find(origin);
      if (found == not_before_.end() || found->second <= Clock::now()) return true;
      until = found->second;
    }
    std::this_thread::sleep_until(std::min(until, Clock::now() + slice));
  }
}

bool RateGate::sleep(Milliseconds wait, const std::function<bool()>& is_cancelled) const {
  const auto until = Clock::now() + scaled(wait);
  while (Clock::now() < until) {
    if (is_cancelled && is_cancelled()) return false;
    std::this_thread::sleep_until(std::min(until, Clock::now() + slice));
  }
  return !is_cancelled || !is_cancelled();
}

}  // namespace inferno::hub
