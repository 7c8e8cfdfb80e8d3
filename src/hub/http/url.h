// URLs, parsed by libcurl and by nothing else: the code that decides where a token may go must parse a URL
// exactly as the code that connects to it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace inferno::hub {

struct Url {
  std::string text;    // whole, normalized
  std::string scheme;  // lower case
  std::string host;    // lower case
  std::string port;    // the scheme's default if none is given

  // Scheme, host and port: the scope of a credential.
  std::string origin() const { return scheme + "://" + host + ":" + port; }
  bool is_loopback() const;
};

// nullopt if the text is not a URL, its scheme is not http or https, or it contains a user name.
std::optional<Url> parse_url(const std::string& text);

// `location` relative to `base`.
std::optional<Url> resolve_url(const Url& base, const std::string& location);

// Without scheme and host: a redirect to another path of the same host.
bool is_relative(std::string_view location);

// Writes every byte that is not a letter, a digit or one of -_.~ as %XX; '/' too unless it is kept.
enum class Slash { kept, quoted };
std::string percent_encoded(std::string_view text, Slash slash);

// For messages: signed URLs carry credentials in their query.
std::string without_query(const std::string& url);

}  // namespace inferno::hub
