// How a handler answers a request.
#pragma once

#include <functional>
#include <string>

#include "server/http/message.h"

namespace inferno::server {

// The response to one request. Thread-safe; calls after the client has gone do nothing. Dropping the last
// reference without a response sends 500.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // The whole response.
  virtual void respond(HttpResponse response) = 0;

  // A response in pieces: begin(), write() and finish(). The head is sent with the first piece, so that a
  // proxy can still send the request elsewhere. While nothing was written for HttpOptions::ping_after, `ping`
  // is sent in its place (and the head, if it was not sent yet); empty: never.
  virtual void begin(HttpResponse head, std::string ping) = 0;
  virtual void write(std::string piece) = 0;
  virtual void finish() = 0;
  // Ends a response that begin() announced and that cannot be completed: with `response` if its head was not
  // sent yet, else with `last_piece`.
  virtual void abandon(HttpResponse response, std::string last_piece) = 0;

  // `gone` is called once, on a thread of the server, if the client disconnects before the response is
  // complete; immediately if it already has. It must not block.
  virtual void on_disconnect(std::function<void()> gone) = 0;
};

}  // namespace inferno::server
