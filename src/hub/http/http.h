// HTTP requests through libcurl: bounded responses, strict redirects, a token that goes to its own host only,
// and a limit on every wait.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "hub/http/message.h"
#include "hub/settings.h"

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

using IsCancelled = std::function<bool()>;  // called from any thread

// Why nothing is transferred, for the user.
struct Pause {
  std::string reason;           // "huggingface.co: asks to wait (status 429)"
  int next_try = 0, tries = 0;  // the attempt that follows, of at most this many
  Milliseconds left{0};
};

// A wait that a host asks for applies to all connections to it. Any thread.
class RateGate {
 public:
  explicit RateGate(double time_scale) : time_scale_(time_scale) {}

  // Holds all requests to `origin` until `wait` is over.
  void hold(const std::string& origin, Milliseconds wait);
  // Returns when a request to `origin` may be sent; false if cancelled first.
  bool pass(const std::string& origin, const IsCancelled& is_cancelled);
  // Sleeps for the scaled time; false if cancelled.
  bool sleep(Milliseconds wait, const Pause& pause, const IsCancelled& is_cancelled);
  // Says why pass() will wait: for a request that a host answered with a wait.
  void explain(const std::string& origin, const Pause& pause);

  // The longest wait at the moment; nullopt if there is none.
  std::optional<Pause> pause() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Until {
    Clock::time_point end;
    Pause pause;
  };
  Milliseconds scaled(Milliseconds wait) const;

  double time_scale_;
  mutable std::mutex mutex_;
  std::map<std::string, Until> not_before_;
  std::list<Until> sleeping_;
};

// Keeps its connections open between requests. One thread at a time; several clients may share a gate.
//
// - The token goes to the origin (scheme, host, port) of the endpoint and nowhere else.
// - URLs are https; http is allowed for this machine only. No redirect leads from https to http.
// - Certificates are verified and TLS is 1.2 or newer; no setting turns that off.
// - Proxies are those of http_proxy, https_proxy, all_proxy and no_proxy, which libcurl reads itself.
class HttpClient {
 public:
  HttpClient(const HubSettings& settings, std::shared_ptr<RateGate> gate, IsCancelled is_cancelled = {});
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // One attempt, with its redirects. Waits first if the host has asked for a pause.
  Outcome attempt(const Request& request);

  // Retries temporary failures. Error{network} if there is no response; a response may have any status that
  // is not retryable.
  Response send(const Request& request);

  // The same for a request whose sink may end the transfer. `again` is called before each further attempt.
  // Error{network} if there is no response.
  Outcome attempt_with_retries(const Request& request, const std::function<void()>& again);

  const HubSettings& settings() const { return settings_; }
  RateGate& gate() { return *gate_; }
  const IsCancelled& is_cancelled() const { return is_cancelled_; }

 private:
  struct Handles;
  Outcome hop(const Request& request, const std::string& url, bool with_token, const Headers& hub_headers);

  HubSettings settings_;
  std::string token_origin_;
  std::shared_ptr<RateGate> gate_;
  IsCancelled is_cancelled_;
  std::unique_ptr<Handles> handles_;
};

// "huggingface.co: cannot be reached", "127.0.0.1:8000: asks to wait (status 429)": why the attempt is
// repeated.
std::string reason_to_wait(const Outcome& outcome, const std::string& url);

// Whether the attempt may be repeated: a network failure, or a status that means "later".
bool is_temporary(const Outcome& outcome);

// Error{network} for an attempt without a response: what happened, at which host, what to do. `subject` is
// the requested file, if that says more than the host.
[[noreturn]] void fail_for(const Outcome& outcome, const HubSettings& settings, const std::string& url,
                           const std::string& subject = {});

// Holds the gate for as long as the response asks. Error{network} with the time if that exceeds max_wait.
void apply_requested_wait(const Response& response, RateGate& gate);

}  // namespace inferno::hub
