#include "hub/http/http.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>
#include <thread>

#include "base/error.h"
#include "hub/http/curl_library.h"
#include "hub/http/transfer.h"
#include "hub/http/url.h"

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

constexpr int max_hops = 10;
constexpr int max_tries_unreachable = 3;

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

Outcome refusal(std::string detail) {
  return {.trouble = Trouble::refused, .detail = std::move(detail), .response = {}, .first_byte_seconds = 0};
}

// Empty if requests may be sent to this URL.
std::string objection(const Url& url) {
  if (url.scheme == "https" || url.is_loopback()) return {};
  return fmt::format("{}: only https is allowed, except for this machine", without_query(url.text));
}

// "huggingface.co", or with an unusual port "127.0.0.1:8000".
std::string host_of(const std::string& url) {
  const auto parsed = parse_url(url);
  if (!parsed) return without_query(url);
  const bool is_usual = parsed->port == (parsed->scheme == "https" ? "443" : "80");
  return is_usual ? parsed->host : parsed->host + ":" + parsed->port;
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
  auto& until = not_before_[origin].end;
  until = std::max(until, Clock::now() + scaled(wait));
}

void RateGate::explain(const std::string& origin, const Pause& pause) {
  const std::lock_guard lock(mutex_);
  not_before_[origin].pause = pause;
}

std::optional<Pause> RateGate::pause() const {
  const std::lock_guard lock(mutex_);
  const Until* longest = nullptr;
  const auto consider = [&](const Until& one) {
    if (longest == nullptr || one.end > longest->end) longest = &one;
  };
  for (const auto& [origin, until] : not_before_) consider(until);
  for (const Until& until : sleeping_) consider(until);
  const auto now = Clock::now();
  if (longest == nullptr || longest->end <= now || longest->pause.reason.empty()) return std::nullopt;
  Pause pause = longest->pause;
  pause.left = std::chrono::duration_cast<Milliseconds>(longest->end - now);
  return pause;
}

bool RateGate::pass(const std::string& origin, const IsCancelled& is_cancelled) {
  while (true) {
    if (is_cancelled && is_cancelled()) return false;
    Clock::time_point until;
    {
      const std::lock_guard lock(mutex_);
      const auto found = not_before_.find(origin);
      if (found == not_before_.end() || found->second.end <= Clock::now()) return true;
      until = found->second.end;
    }
    std::this_thread::sleep_until(std::min(until, Clock::now() + slice));
  }
}

bool RateGate::sleep(Milliseconds wait, const Pause& pause, const IsCancelled& is_cancelled) {
  const auto until = Clock::now() + scaled(wait);
  std::unique_lock lock(mutex_);
  const auto own = sleeping_.insert(sleeping_.end(), {until, pause});
  lock.unlock();
  const auto is_over = [&] { return is_cancelled && is_cancelled(); };
  while (Clock::now() < until && !is_over()) {
    std::this_thread::sleep_until(std::min(until, Clock::now() + slice));
  }
  lock.lock();
  sleeping_.erase(own);
  lock.unlock();
  return !is_over();
}

struct HttpClient::Handles {
  TransferHandles transfer;
};

HttpClient::HttpClient(const HubSettings& settings, std::shared_ptr<RateGate> gate, IsCancelled is_cancelled)
    : settings_(settings),
      gate_(std::move(gate)),
      is_cancelled_(std::move(is_cancelled)),
      handles_(std::make_unique<Handles>()) {
  const auto endpoint = parse_url(settings_.endpoint);
  if (!endpoint) {
    fail(ErrorKind::invalid_request,
         fmt::format("{}={}: not a URL", settings_.endpoint_source, without_query(settings_.endpoint)));
  }
  if (const std::string why = objection(*endpoint); !why.empty()) {
    fail(ErrorKind::invalid_request,
         fmt::format("{}={}: expected https://", settings_.endpoint_source, endpoint->text),
         {.why = why, .next = "use the https URL of this hub"});
  }
  token_origin_ = endpoint->origin();
}

HttpClient::~HttpClient() = default;

Outcome HttpClient::hop(const Request& request, const std::string& url, bool with_token,
                        const Headers& hub_headers) {
  TransferOptions options = {.url = url,
                             .headers = request.headers,
                             .method = request.method,
                             .body_limit = request.body_limit,
                             .sink = &request.sink,
                             .is_cancelled = &is_cancelled_,
                             .settings = &settings_,
                             .hub_headers = hub_headers};
  if (with_token) options.headers.push_back("Authorization: Bearer " + settings_.token);
  return transfer(handles_->transfer, options);
}

Outcome HttpClient::attempt(const Request& request) {
  auto url = parse_url(request.url);
  if (!url) return refusal(fmt::format("{}: not a URL", without_query(request.url)));
  Headers hub_headers;
  for (int hops = 0; hops <= max_hops; ++hops) {
    if (const std::string why = objection(*url); !why.empty()) return refusal(why);
    if (!gate_->pass(url->origin(), is_cancelled_))
      return {.trouble = Trouble::cancelled, .detail = {}, .response = {}, .first_byte_seconds = 0};
    const bool at_home = url->origin() == token_origin_;
    Outcome outcome = hop(request, url->text, at_home && !settings_.token.empty(), hub_headers);
    outcome.response.url = url->text;
    if (at_home) hub_headers = outcome.response.headers;
    outcome.response.hub_headers = hub_headers;
    const std::string& location = outcome.response.headers["location"];
    if (outcome.trouble != Trouble::none || !is_redirect(outcome.response.status) || location.empty())
      return outcome;
    const auto next = resolve_url(*url, location);
    if (!next) return refusal(fmt::format("{} redirects to an invalid URL", without_query(url->text)));
    if (request.redirects == Redirects::none ||
        (request.redirects == Redirects::relative && !is_relative(location))) {
      outcome.response.location = next->text;
      return outcome;
    }
    if (url->scheme == "https" && next->scheme != "https") {
      return refusal(fmt::format("{} redirects from https to http", without_query(url->text)));
    }
    url = next;
  }
  return refusal(fmt::format("{}: more than {} redirects", without_query(request.url), max_hops));
}

Response HttpClient::send(const Request& request) {
  return std::move(attempt_with_retries(request, {}).response);
}

Outcome HttpClient::attempt_with_retries(const Request& request, const std::function<void()>& again) {
  for (int tries = 1;; ++tries) {
    Outcome outcome = attempt(request);
    const bool answered = outcome.trouble == Trouble::none;
    if (outcome.trouble == Trouble::stopped || (answered && !is_retryable(outcome.response.status)))
      return outcome;
    if (answered) apply_requested_wait(outcome.response, *gate_);
    const int limit = outcome.trouble == Trouble::unknown_host  ? 1
                      : outcome.trouble == Trouble::unreachable ? max_tries_unreachable
                                                                : max_tries;
    if (!is_temporary(outcome) || tries >= limit) {
      if (answered) return outcome;
      fail_for(outcome, settings_, request.url);
    }
    const bool server_set_wait =
        answered && requested_wait(outcome.response.headers, std::chrono::system_clock::now());
    const Pause pause = {
        .reason = reason_to_wait(outcome, request.url), .next_try = tries + 1, .tries = limit};
    if (server_set_wait) {
      if (const auto url = parse_url(outcome.response.url)) gate_->explain(url->origin(), pause);
    } else if (!gate_->sleep(backoff(tries), pause, is_cancelled_)) {
      fail_for({.trouble = Trouble::cancelled, .detail = {}, .response = {}, .first_byte_seconds = 0},
               settings_, request.url);
    }
    if (again) again();
  }
}

std::string reason_to_wait(const Outcome& outcome, const std::string& url) {
  const std::string host = host_of(outcome.response.url.empty() ? url : outcome.response.url);
  if (outcome.trouble == Trouble::none || outcome.trouble == Trouble::stopped) {
    const int status = outcome.response.status;
    const bool asks = requested_wait(outcome.response.headers, std::chrono::system_clock::now()).has_value();
    if (is_retryable(status))
      return fmt::format("{}: {} (status {})", host, asks ? "asks to wait" : "is busy", status);
    return fmt::format("{}: sent an unexpected answer", host);
  }
  const bool is_silent = outcome.trouble == Trouble::stalled;
  const bool is_lost = outcome.trouble == Trouble::broken;
  return fmt::format("{}: {}", host,
                     is_silent ? "stopped sending data"
                     : is_lost ? "connection lost"
                               : "cannot be reached");
}

bool is_temporary(const Outcome& outcome) {
  switch (outcome.trouble) {
    case Trouble::none: return is_retryable(outcome.response.status);
    case Trouble::unknown_host:
    case Trouble::unreachable:
    case Trouble::broken:
    case Trouble::stalled: return true;
    case Trouble::untrusted:
    case Trouble::too_large:
    case Trouble::refused:
    case Trouble::stopped:
    case Trouble::cancelled: return false;
  }
  return false;
}

void fail_for(const Outcome& outcome, const HubSettings& settings, const std::string& url,
              const std::string& subject) {
  const std::string named = host_of(url);
  const bool is_mirror = settings.endpoint_source != "default";
  const std::string asked = is_mirror ? fmt::format(" (from {})", settings.endpoint_source) : "";
  const std::string host = subject.empty() ? named : fmt::format("{}: {}", subject, named);
  switch (outcome.trouble) {
    case Trouble::unknown_host:
      fail(ErrorKind::network, fmt::format("{}{}: unknown host, or no network", host, asked),
           {.why = outcome.detail,
            .next = "connect and run again, or use a model that is on this machine (inferno list)"});
    case Trouble::unreachable:
      fail(ErrorKind::network, fmt::format("{}{}: cannot be reached", host, asked),
           {.why = outcome.detail, .next = "check the network and the proxy (https_proxy), then run again"});
    case Trouble::untrusted:
      fail(ErrorKind::network, fmt::format("{}{}: TLS verification failed", host, asked),
           {.why = outcome.detail,
            .next =
                "check the clock of this machine; if a company proxy intercepts TLS, trust its certificates: "
                "export SSL_CERT_FILE=/path/to/ca.pem"});
    case Trouble::stalled:
      fail(ErrorKind::network, fmt::format("{}{}: stopped sending data", host, asked),
           {.why = outcome.detail, .next = "run the same command again"});
    case Trouble::too_large:
    case Trouble::refused:
      fail(ErrorKind::network, fmt::format("{}{}: unacceptable response", host, asked),
           {.why = outcome.detail, .next = "check HF_ENDPOINT and the proxy"});
    case Trouble::cancelled: fail(ErrorKind::network, "interrupted");
    case Trouble::none:
    case Trouble::stopped:
    case Trouble::broken: break;
  }
  fail(ErrorKind::network, fmt::format("{}{}: connection lost", host, asked),
       {.why = outcome.detail, .next = "run the same command again"});
}

void apply_requested_wait(const Response& response, RateGate& gate) {
  const auto wait = requested_wait(response.headers, std::chrono::system_clock::now());
  if (!wait) return;
  const auto url = parse_url(response.url);
  const std::string host = url ? url->host : std::string("the hub");
  if (*wait > max_wait) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*wait).count();
    fail(ErrorKind::network,
         fmt::format("{}: the server asked Inferno to wait {} seconds (status {})", host, seconds,
                     response.status),
         {.why = "Inferno waits at most five minutes",
          .next = response.status == 429
                      ? "try again later; with a token the limits are higher: export HF_TOKEN=..."
                      : "try again later"});
  }
  if (url) gate.hold(url->origin(), *wait);
}

}  // namespace inferno::hub
