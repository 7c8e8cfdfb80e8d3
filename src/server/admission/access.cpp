#include "server/admission/access.h"

#include <openssl/crypto.h>

#include <algorithm>

#include "base/error.h"
#include "base/host_name.h"
#include "base/utf8.h"

namespace inferno::server {
namespace {

// The credentials of `Authorization: Bearer KEY`; the scheme's name has no case.
std::string_view bearer(std::string_view header) {
  constexpr std::string_view scheme = "bearer ";
  if (lower_case(header.substr(0, scheme.size())) != scheme) return {};
  return trimmed(header.substr(scheme.size()));
}

bool is_digits(std::string_view text) {
  return std::ranges::all_of(text, [](char letter) { return letter >= '0' && letter <= '9'; });
}

// The host of "host:port" or "[address]:port", in lower case; empty if it is neither.
std::string host_of(std::string_view header) {
  const std::size_t size =
      header.starts_with('[') ? header.find(']') + 1 : std::min(header.find(':'), header.size());
  const std::string_view port = header.substr(size);
  if (!port.empty() && (!port.starts_with(':') || !is_digits(port.substr(1)))) return {};
  return lower_case(header.substr(0, size));
}

bool is_address(std::string_view host) {
  return host.starts_with('[') || is_ipv4(host);
}

// A list of header names, as a browser sends it; it is repeated in the response.
bool is_name_list(std::string_view text) {
  return lower_case(text).find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_, ") == std::string::npos;
}

}  // namespace

Access::Access(AccessOptions options) : options_(std::move(options)) {
  for (std::string& key : options_.keys) {
    // An empty key would be in every request that has none.
    if (key.empty()) fail(ErrorKind::invalid_request, "an API key is empty");
    digests_.push_back(sha256(key));
    OPENSSL_cleanse(key.data(), key.size());
  }
  options_.keys.clear();
  for (std::string& host : options_.allowed_hosts) host = lower_case(host);
}

std::optional<int> Access::key_of(const HttpRequest& request) const {
  if (digests_.empty()) return 0;
  const Digest sent[] = {sha256(bearer(request.header("authorization"))),
                         sha256(trimmed(request.header("x-api-key")))};
  // Every digest is compared with every key: the time tells neither which key nor how much of it was right.
  int found = 0;
  for (std::size_t at = 0; at < digests_.size(); ++at) {
    for (const Digest& digest : sent) {
      const bool is_equal = CRYPTO_memcmp(digest.data(), digests_[at].data(), digest.size()) == 0;
      found = is_equal ? static_cast<int>(at) + 1 : found;
    }
  }
  if (found == 0) return std::nullopt;
  return found;
}

bool Access::is_known_host(std::string_view host) const {
  if (is_loopback(host)) return true;
  if (std::ranges::find(options_.allowed_hosts, host) != options_.allowed_hosts.end()) return true;
  return !options_.is_loopback && (options_.allowed_hosts.empty() || is_address(host));
}

bool Access::is_listed(std::string_view origin) const {
  return std::ranges::any_of(options_.cors_origins,
                             [&](const std::string& listed) { return listed == "*" || listed == origin; });
}

std::optional<Refusal> Access::refuses(const HttpRequest& request) const {
  const std::string_view host = request.header("host");
  // No browser leaves out Host, and it is browsers that this protects from.
  if (!host.empty() && !is_known_host(host_of(host))) return Refusal::bad_host;
  const std::string_view origin = request.header("origin");
  if (origin.empty() || is_listed(origin)) return std::nullopt;
  const std::size_t scheme = origin.find("://");
  const bool is_own =
      scheme != std::string_view::npos && lower_case(origin.substr(scheme + 3)) == lower_case(host);
  return is_own ? std::nullopt : std::optional(Refusal::bad_origin);
}

Headers Access::cors_headers(const HttpRequest& request) const {
  const std::string_view origin = request.header("origin");
  if (origin.empty() || !is_listed(origin)) return {};
  Headers headers;
  if (std::ranges::find(options_.cors_origins, "*") != options_.cors_origins.end()) {
    headers.emplace_back("Access-Control-Allow-Origin", "*");
  } else {
    headers.emplace_back("Access-Control-Allow-Origin", origin);
    headers.emplace_back("Vary", "Origin");
  }
  headers.emplace_back("Access-Control-Expose-Headers",
                       "x-request-id, x-inferno-ignored, x-inferno-worker, retry-after");
  return headers;
}

std::optional<HttpResponse> Access::preflight(const HttpRequest& request,
                                              std::string_view allowed_methods) const {
  if (request.method != "OPTIONS" || request.header("access-control-request-method").empty()) {
    return std::nullopt;
  }
  Headers headers = cors_headers(request);
  if (headers.empty()) return std::nullopt;
  headers.emplace_back("Access-Control-Allow-Methods", allowed_methods);
  const std::string_view names = request.header("access-control-request-headers");
  if (!names.empty() && is_name_list(names)) headers.emplace_back("Access-Control-Allow-Headers", names);
  if (request.header("access-control-request-private-network") == "true") {
    headers.emplace_back("Access-Control-Allow-Private-Network", "true");
  }
  headers.emplace_back("Access-Control-Max-Age", "600");
  return HttpResponse{.status = 204, .headers = std::move(headers), .body = {}};
}

}  // namespace inferno::server
