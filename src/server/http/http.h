// An HTTP/1.1 server, with or without TLS: connections, framing, limits and time-outs. Knows nothing of
// models or JSON. http.cpp is the only file that includes Boost.
//
// Ordinary manners: keep-alive also after a stream, pipelining, chunked request bodies, Expect: 100-continue,
// HEAD (the handler sees it; no body is sent), a client that shut down its sending side is still served.
// Malformed framing gets 400 and the connection is closed; what is larger than a limit gets 413, 414 or 431
// before it is buffered.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "server/http/exchange.h"
#include "server/http/message.h"
#include "server/http/options.h"

namespace inferno::server {

struct HttpCounts {
  int connections = 0;          // open
  std::uint64_t accepted = 0;   // connections
  std::uint64_t refused = 0;    // connections beyond a limit
  std::uint64_t malformed = 0;  // requests that were no HTTP
};

class HttpServer {
 public:
  // Binds and listens, or takes over HttpOptions::listeners. Error{io} if the address is in use or not
  // allowed, Error{invalid_request} for a host that is no address and for a descriptor that is no listening
  // TCP socket, Error{io} or Error{corrupt} for certificate files.
  HttpServer(HttpOptions options, HttpHandler handler);
  ~HttpServer();  // closes every connection
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;
  void start();  // serves on threads of its own
  // Closes the listener. Exchanges go on, requests on open connections are still handed to the handler, and
  // every response is the last of its connection.
  void stop_accepting();
  // After stop_accepting(): false if exchanges are still open when the time is up.
  bool wait_until_idle(std::chrono::milliseconds patience);
  HttpCounts counts() const;  // thread-safe

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace inferno::server
