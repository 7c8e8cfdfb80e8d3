// The address of a server that a command talks to over plain HTTP.
#pragma once

#include <string>

namespace inferno {

struct HttpTarget {
  std::string host;       // without brackets
  std::string authority;  // "host:port", as in the URL
  std::string port;
  std::string path;  // begins with a slash; empty if the URL has none
};

// `url` is http://HOST[:PORT][/PATH], or the same without the scheme, whose port is then 8000 unless given.
// Error{invalid_request} for https, user names, queries and anything else.
HttpTarget http_target(const std::string& url);

}  // namespace inferno
