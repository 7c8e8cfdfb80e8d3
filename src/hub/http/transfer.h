// One HTTP exchange with one host through libcurl, without redirects or retries.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hub/http/curl_library.h"
#include "hub/http/message.h"
#include "hub/settings.h"

namespace inferno::hub {

// libcurl's handles, which keep connections open. One thread at a time.
class TransferHandles {
 public:
  TransferHandles();
  ~TransferHandles();
  TransferHandles(const TransferHandles&) = delete;
  TransferHandles& operator=(const TransferHandles&) = delete;

  CURL* easy() { return easy_; }
  CURLM* multi() { return multi_; }

 private:
  CURL* easy_;
  CURLM* multi_;
};

struct TransferOptions {
  std::string url;
  std::vector<std::string> headers;
  Method method = Method::get;
  std::size_t body_limit = 0;
  const std::function<bool(const Response&, std::span<const std::byte>)>* sink = nullptr;
  const std::function<bool()>* is_cancelled = nullptr;
  const HubSettings* settings = nullptr;
  Headers hub_headers = {};  // of the hub's response that redirected here
};

// Ends within a tenth of a second if cancelled, at the stall timeout if no data arrives, and if the rate
// stays below 1 KiB/s for a minute.
Outcome transfer(TransferHandles& handles, const TransferOptions& options);

}  // namespace inferno::hub
