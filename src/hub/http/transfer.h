// One exchange with one host over libcurl, without redirects and without second tries.
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
  Headers hub_headers = {};  // of the hub's own answer, when it sent us here
};

// Ends within a tenth of a second when cancelled, at the stall timeout when nothing comes, and when less than
// 1 KiB a second came for a minute.
Outcome transfer(TransferHandles& handles, const TransferOptions& options);

}  // namespace inferno::hub
