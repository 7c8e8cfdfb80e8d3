// Who may send requests: API keys, and the Host and Origin headers that protect a local server from web
// pages.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/admission/digest.h"
#include "server/http/http.h"

namespace inferno::server {

struct AccessOptions {
  std::vector<std::string> keys = {};  // empty: no key is needed
  bool is_loopback = true;             // bound to a loopback address: only loopback names in Host
  // Further values of Host, without port. On a public address they are the only names; without any, every
  // Host is accepted there. Addresses are always accepted there: a name is needed to rebind one.
  std::vector<std::string> allowed_hosts = {};
  std::vector<std::string> cors_origins = {};  // exact; "*": any, without credentials
};

enum class Refusal { bad_host, bad_origin, no_key, wrong_key };

// Immutable; any thread.
class Access {
 public:
  // Keeps SHA-256 of the keys, not the keys. Error{invalid_request} for an empty key.
  explicit Access(AccessOptions options);

  bool needs_key() const { return !digests_.empty(); }
  // The number of the key in `Authorization: Bearer` or `x-api-key`, from 1; 0 if no keys are set. nullopt:
  // none or a wrong one. Compares with every key in constant time.
  std::optional<int> key_of(const HttpRequest& request) const;
  // Host and Origin. nullopt: allowed. An origin is allowed if it is this server's own or listed.
  std::optional<Refusal> refuses(const HttpRequest& request) const;
  // Headers for a response to a request from a listed origin; empty otherwise.
  Headers cors_headers(const HttpRequest& request) const;
  // The response to an OPTIONS request (preflight) from a listed origin; nullopt if CORS is off for it.
  std::optional<HttpResponse> preflight(const HttpRequest& request, std::string_view allowed_methods) const;

 private:
  bool is_known_host(std::string_view host) const;
  bool is_listed(std::string_view origin) const;

  AccessOptions options_;
  std::vector<Digest> digests_;
};

}  // namespace inferno::server
