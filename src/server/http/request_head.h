// Parses the heads of HTTP/1.x requests. One that two parsers could read differently is refused, so that this
// server and a proxy in front of it always see the same requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/message.h"

namespace inferno::server {

// Thrown for a request that is refused for its form; the connection cannot be used for another one.
struct BadRequest {
  int status = 400;
  std::string message;
};

struct HeadLimits {
  std::size_t max_head, max_headers, max_target;  // as in HttpOptions
};

struct RequestHead {
  HttpRequest request;  // without body and peer
  bool is_http10 = false;
  bool keep_alive = true;         // the client's wish, or the default of its version
  bool expects_continue = false;  // waits for 100 before it sends the body
  bool is_chunked = false;
  std::uint64_t content_length = 0;

  bool has_body() const { return is_chunked || content_length > 0; }
};

// Finds the end of a head in input that arrives piece by piece.
class HeadScanner {
 public:
  explicit HeadScanner(HeadLimits limits) : limits_(limits) {}

  // `input` begins with the head and only grows between two calls. Returns the head's size including its
  // empty line (2 for an empty line in place of a head), nullopt if the end is not there yet. BadRequest as
  // soon as a byte is wrong or a limit is exceeded.
  std::optional<std::size_t> find_end(std::string_view input);
  void reset() { scanned_ = first_line_ = 0; }  // before the next head

 private:
  HeadLimits limits_;
  std::size_t scanned_ = 0;
  std::size_t first_line_ = 0;  // size of the request line; 0 before its end was seen
};

// `head` is what a HeadScanner found. BadRequest if it is malformed, ambiguous or too large.
RequestHead parse_head(std::string_view head, HeadLimits limits);

// Whether a comma-separated list such as "keep-alive, Upgrade" has this (lower-case) member.
bool lists(std::string_view value, std::string_view member);

}  // namespace inferno::server
