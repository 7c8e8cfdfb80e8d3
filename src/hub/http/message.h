// HTTP requests and responses as plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"

namespace inferno::hub {

// Names are lower case. If a header is repeated, the last one counts, as in most clients.
class Headers {
 public:
  void add(std::string_view line);                             // "Name: value\r\n"; anything else is ignored
  const std::string& operator[](std::string_view name) const;  // empty if absent
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  void clear() { values_.clear(); }

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

inline void Headers::add(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0) return;
  values_[lower_case(line.substr(0, colon))] = std::string(trimmed(line.substr(colon + 1)));
}

inline const std::string& Headers::operator[](std::string_view name) const {
  static const std::string absent;
  const auto found = values_.find(name);
  return found == values_.end() ? absent : found->second;
}

struct Response {
  int status = 0;
  std::string url;  // the final one, after redirects
  Headers headers;
  std::string body;  // empty if a sink took it
  // The headers of the hub's last response before a redirect to another host.
  Headers hub_headers;
  std::string location;  // the absolute target of a redirect that was not followed
};

enum class Method { get, head };

enum class Redirects {
  follow,    // up to ten, from https never to http
  relative,  // only within the same host; any other redirect is the response
  none
};

struct Request {
  Method method = Method::get;
  std::string url;
  std::vector<std::string> headers;  // "Name: value"
  Redirects redirects = Redirects::follow;
  std::size_t body_limit = std::size_t{8} << 20;  // a longer body is an error and is not read
  // Receives the body of a 200 or 206 response in pieces, in the caller's thread. Returning false ends the
  // transfer.
  std::function<bool(const Response& head, std::span<const std::byte> bytes)> sink = {};
};

// How one attempt ended.
enum class Trouble {
  none,  // there is a response, with any status
  unknown_host,
  unreachable,  // connection refused, no route, timeout
  untrusted,    // TLS: certificate or protocol version
  broken,       // the connection was lost
  stalled,
  too_large,
  refused,  // by this client: a redirect that must not be followed
  stopped,  // by the sink
  cancelled
};

struct Outcome {
  Trouble trouble = Trouble::none;
  std::string detail;
  Response response;
  double first_byte_seconds = 0;  // until the final response began
};

}  // namespace inferno::hub
