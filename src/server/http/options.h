// How the HTTP server is set up, and what it calls.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/http/exchange.h"
#include "server/http/message.h"

namespace inferno::server {

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8000;                         // 0: any free port
  std::vector<int> listeners = {};         // TCP sockets that listen already, instead of host and port
  std::string certificate_file, key_file;  // PEM; both empty: no TLS

  std::size_t max_body = std::size_t{8} << 20;
  std::size_t max_body_memory = std::size_t{256} << 20;  // of all bodies together (body_budget.h)
  std::size_t max_head = std::size_t{16} << 10;          // bytes of the request line and all headers
  std::size_t max_headers = 100;
  std::size_t max_target = std::size_t{8} << 10;
  std::size_t max_unsent = std::size_t{16}
                           << 20;  // bytes a client may leave unread before it is disconnected
  int max_connections = 1024;
  int max_connections_per_address = 128;  // not for loopback addresses

  std::chrono::milliseconds head_timeout{10'000};  // for a whole request head
  std::chrono::milliseconds body_timeout{30'000};  // between two pieces of a body
  std::chrono::milliseconds write_timeout{30'000};
  std::chrono::milliseconds idle_timeout{60'000};  // between two requests
  std::chrono::milliseconds ping_after{15'000};
};

// All are called on a thread of the server and must not block: long work belongs on other threads.
struct HttpHandler {
  // Called with the head alone, before the body is read. A response refuses the request: it is sent, and the
  // connection is closed unless the body is empty or was already received.
  std::function<std::optional<HttpResponse>(const HttpRequest& head)> admit;
  std::function<void(HttpRequest request, std::shared_ptr<Exchange> exchange)> handle;
  // The response to a request that the HTTP server refuses itself (400, 408, 413, 414, 415, 417, 431, 505,
  // and 503 if there is no memory left for its body). `head` has what could be read of it. nullptr: there is
  // no request to name, because the connection is one too many (503) or the handler already had the request
  // and never answered (500).
  std::function<HttpResponse(const HttpRequest* head, int status, const std::string& message)> refuse;
};

}  // namespace inferno::server
