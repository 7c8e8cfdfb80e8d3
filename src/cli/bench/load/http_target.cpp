#include "cli/bench/load/http_target.h"

#include <fmt/format.h>

#include <string_view>

#include "base/error.h"
#include "base/utf8.h"

namespace inferno {

HttpTarget http_target(const std::string& url) {
  constexpr std::string_view scheme = "http://";
  if (url.starts_with("https://")) {
    fail(ErrorKind::invalid_request, fmt::format("{}: https is not supported here", quote(url)),
         {.why = {}, .next = "use http:// and a port without TLS"});
  }
  HttpTarget target;
  std::string rest = url.starts_with(scheme) ? url.substr(scheme.size()) : url;
  if (const std::size_t slash = rest.find('/'); slash != std::string::npos) {
    if (slash + 1 < rest.size()) target.path = rest.substr(slash);
    rest.resize(slash);
  }
  target.authority = rest;
  const std::size_t bracket = rest.starts_with('[') ? rest.find(']') : 0;
  const std::size_t colon = bracket == std::string::npos ? bracket : rest.find(':', bracket);
  target.port = url.starts_with(scheme) ? "80" : "8000";
  target.host = rest.substr(0, colon);
  if (colon != std::string::npos) target.port = rest.substr(colon + 1);
  if (bracket != 0 && bracket != std::string::npos) target.host = rest.substr(1, bracket - 1);
  const bool is_odd = url.find_first_of(" \t\r\n@?#") != std::string::npos;
  if (is_odd || target.host.empty() || bracket == std::string::npos ||
      target.port.find_first_not_of("0123456789") != std::string::npos || target.port.empty()) {
    fail(ErrorKind::invalid_request,
         fmt::format("url: expected http://HOST:PORT or http://HOST:PORT/PATH, found {}", quote(url)));
  }
  return target;
}

}  // namespace inferno
