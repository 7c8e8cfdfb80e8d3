// Many streaming requests at once from one thread: plain sockets and epoll, so that the client takes a small
// share of the time of the server it measures.
#pragma once

#include <sys/socket.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cli/bench/load/event_stream.h"
#include "cli/bench/load/http_target.h"
#include "cli/bench/load/load_run.h"
#include "hub/files.h"

namespace inferno::load {

// A server and how to address it.
class ServerAddress {
 public:
  // Tries the addresses of the host until one accepts a connection. Error{network} if none does.
  ServerAddress(const HttpTarget& target, std::string key);

  const HttpTarget& target() const { return target_; }
  // A whole HTTP request. `path` is appended to the path of the URL.
  std::string request(std::string_view method, std::string_view path, std::string_view body) const;
  // A socket that connects without waiting; not open, with errno, if there is none.
  hub::Descriptor connect() const;

 private:
  HttpTarget target_;
  std::string key_;
  sockaddr_storage address_ = {};
  socklen_t length_ = 0;
};

// One request, waiting for its whole response. Error{network} if there is none within `seconds`.
EventStream exchange(const ServerAddress& server, const std::string& request, double seconds);

struct ClientOptions {
  // The HTTP request number i of the plan, made just before it is sent.
  std::function<std::string(std::size_t)> request;
  double stall_seconds = 600.0;  // a request that is silent for so long has failed
};

// Each request has a connection of its own. `server` must outlive the target.
std::unique_ptr<Target> make_server_target(const ServerAddress& server, ClientOptions options);

}  // namespace inferno::load
