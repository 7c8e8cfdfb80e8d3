#include "hub/http/url.h"

#include <fmt/format.h>

#include <cctype>
#include <memory>

#include "base/host_name.h"
#include "base/utf8.h"
#include "hub/http/curl_library.h"

namespace inferno::hub {
namespace {

struct Cleanup {
  void operator()(CURLU* handle) const { curl().url_cleanup(handle); }
};
using Handle = std::unique_ptr<CURLU, Cleanup>;

std::optional<std::string> part(CURLU* handle, CURLUPart which, unsigned flags = 0) {
  char* text = nullptr;
  if (curl().url_get(handle, which, &text, flags) != CURLUE_OK || text == nullptr) return std::nullopt;
  std::string copy(text);
  curl().free(text);
  return copy;
}

std::optional<Url> parts_of(CURLU* handle) {
  const auto text = part(handle, CURLUPART_URL);
  const auto scheme = part(handle, CURLUPART_SCHEME);
  const auto host = part(handle, CURLUPART_HOST);
  const auto port = part(handle, CURLUPART_PORT, CURLU_DEFAULT_PORT);
  if (!text || !scheme || !host || !port || host->empty()) return std::nullopt;
  Url url = {.text = *text, .scheme = lower_case(*scheme), .host = lower_case(*host), .port = *port};
  if (url.scheme != "http" && url.scheme != "https") return std::nullopt;
  return url;
}

bool has_control(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return true;
  }
  return false;
}

}  // namespace

bool Url::is_loopback() const {
  return inferno::is_loopback(host);
}

std::optional<Url> parse_url(const std::string& text) {
  if (has_control(text)) return std::nullopt;
  const Handle handle(curl().url());
  if (curl().url_set(handle.get(), CURLUPART_URL, text.c_str(), CURLU_DISALLOW_USER) != CURLUE_OK)
    return std::nullopt;
  return parts_of(handle.get());
}

std::optional<Url> resolve_url(const Url& base, const std::string& location) {
  if (has_control(location)) return std::nullopt;
  const Handle handle(curl().url());
  if (curl().url_set(handle.get(), CURLUPART_URL, base.text.c_str(), 0) != CURLUE_OK) return std::nullopt;
  const unsigned flags = CURLU_DISALLOW_USER | CURLU_URLENCODE;
  if (curl().url_set(handle.get(), CURLUPART_URL, location.c_str(), flags) != CURLUE_OK) return std::nullopt;
  return parts_of(handle.get());
}

bool is_relative(std::string_view location) {
  if (location.starts_with("//") || location.starts_with("\\") || location.starts_with("/\\")) return false;
  const std::size_t colon = location.find(':');
  return colon == std::string_view::npos || location.find_first_of("/?#") < colon;
}

std::string percent_encoded(std::string_view text, Slash slash) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~' || (c == '/' && slash == Slash::kept);
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", byte);
    }
  }
  return out;
}

std::string without_query(const std::string& url) {
  return url.substr(0, url.find_first_of("?#"));
}

}  // namespace inferno::hub
