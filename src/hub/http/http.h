// Requests over HTTP, on libcurl: bounded answers, redirects by our rules, tokens for their own host only,
// and an end to every wait.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "hub/http/message.h"
#include "hub/http/retry.h"
#include "hub/settings.h"

namespace inferno::hub {

using IsCancelled = std::function<bool()>;  // any thread may ask

// Keeps its connections open between requests. One thread at a time; several clients may share a gate.
//
// - The token goes to the origin (scheme, host, port) of the endpoint and nowhere else.
// - Addresses are https; http only where the host is this machine. From https nothing leads to http.
// - Certificates are checked and TLS is 1.2 or newer; nothing turns that off.
// - Proxies are those of http_proxy, https_proxy, all_proxy and no_proxy, which libcurl reads itself.
class HttpClient {
 public:
  HttpClient(const HubSettings& settings, std::shared_ptr<RateGate> gate, IsCancelled is_cancelled = {});
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // One go, with its redirects. Waits before it while the host asked for that.
  Outcome attempt(const Request& request);

  // As often as it is worth it. Error{network} when there is no answer; an answer may have any status that is
  // not worth another try.
  Response send(const Request& request);

  // The same for a request whose sink may end it, which is an outcome too. `again` is called before each
  // further try. Error{network} when there is no answer.
  Outcome attempt_patiently(const Request& request, const std::function<void()>& again);

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

// Whether an attempt that ended so may be repeated: the network's fault, or the server says "later".
bool is_temporary(const Outcome& outcome);

// Error{network} for an attempt that got no answer: what happened, to which host, what to do. `subject` is
// what was asked for, when that says more than the host.
[[noreturn]] void fail_for(const Outcome& outcome, const HubSettings& settings, const std::string& url,
                           const std::string& subject = {});

// Holds the gate as long as the answer asks. Error{network} with the time when that is longer than anybody
// waits.
void heed(const Response& response, RateGate& gate);

}  // namespace inferno::hub
