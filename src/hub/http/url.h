// Addresses on the web, taken apart by libcurl and by nothing else: what decides where a token may go must
// read an address exactly as what connects to it does.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace inferno::hub {

struct Url {
  std::string text;    // whole, normalized
  std::string scheme;  // lower case
  std::string host;    // lower case
  std::string port;    // the scheme's own when none is written

  // Scheme, host and port: what a credential belongs to.
  std::string origin() const { return scheme + "://" + host + ":" + port; }
  bool is_loopback() const;
};

// nullopt when it is no address, has another scheme than http or https, or names a user.
std::optional<Url> parse_url(const std::string& text);

// What `location` means on a page that was at `base`.
std::optional<Url> resolve_url(const Url& base, const std::string& location);

// Without scheme and host: a repository that moved on the same hub.
bool is_relative(std::string_view location);

// Every byte that is not a letter, a digit or one of -_.~ as %XX; '/' too unless it is kept.
enum class Slash { kept, quoted };
std::string percent_encoded(std::string_view text, Slash slash);

// For messages: signed addresses carry credentials in their query.
std::string without_query(const std::string& url);

}  // namespace inferno::hub
