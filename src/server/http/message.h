// Requests and responses as handlers see them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace inferno::server {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;  // as sent: "GET"
  std::string path;    // up to '?', as sent: percent-encoding is not decoded
  std::string query;   // after '?'
  Headers headers;     // names in lower case, in the order sent
  std::string body;
  std::shared_ptr<void> body_share = {};  // of the memory for bodies, until the last copy is gone
  std::string peer;                       // the client's address, for the log

  // The value of the first header of this (lower-case) name; empty if there is none.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  Headers headers;  // Content-Length, Transfer-Encoding, Connection and Date are added
  std::string body;
};

}  // namespace inferno::server
