#include "server/http/request_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace inferno::server {

namespace {

constexpr std::string_view blanks = " \t";  // that HTTP allows around values
// A request line holds a method and a version beside the target.
constexpr std::size_t around_target = 64;
constexpr std::size_t max_method = 32;

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// RFC 9110's tchar.
bool is_token_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_character);
}

void read_version(RequestHead& head, std::string_view version) {
  const bool has_form = version.size() == 8 && version.starts_with("HTTP/") && is_digit(version[5]) &&
                        version[6] == '.' && is_digit(version[7]);
  if (!has_form) throw BadRequest{400, "the request line must end with HTTP/1.1 or HTTP/1.0"};
  if (version[5] != '1') throw BadRequest{505, "only HTTP/1.1 and HTTP/1.0 are supported"};
  head.is_http10 = version[7] == '0';
}

// The origin form "/path?query", "*", or the absolute form, whose authority replaces the Host header.
void read_target(RequestHead& head, std::string_view target, std::string& authority) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (lower_case(target.substr(0, scheme.size())) != scheme) continue;
    target.remove_prefix(scheme.size());
    const std::size_t end = std::min(target.find_first_of("/?"), target.size());
    authority = target.substr(0, end);
    target.remove_prefix(end);
    if (authority.empty()) throw BadRequest{400, "the request target has no host"};
    if (!target.starts_with('/')) head.request.path = "/";
    break;
  }
  if (authority.empty() && target != "*" && !target.starts_with('/')) {
    throw BadRequest{400, "the request target must begin with '/'"};
  }
  const std::size_t mark = target.find('?');
  head.request.path += target.substr(0, mark);
  if (mark != std::string_view::npos) head.request.query = target.substr(mark + 1);
}

void read_request_line(RequestHead& head, std::string_view line, std::size_t max_target,
                       std::string& authority) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    throw BadRequest{400, "the request line must be a method, a target and a version"};
  }
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (!is_token(method) || method.size() > max_method) throw BadRequest{400, "malformed request method"};
  if (target.empty() || target.find_first_of(" \t") != std::string_view::npos) {
    throw BadRequest{400, "malformed request target"};
  }
  if (target.size() > max_target) {
    throw BadRequest{414, fmt::format("the request target is longer than {} bytes", max_target)};
  }
  read_version(head, line.substr(last + 1));
  head.request.method = method;
  read_target(head, target, authority);
}

void read_header(RequestHead& head, std::string_view line) {
  const std::size_t colon = line.find(':');
  if (line.front() == ' ' || line.front() == '\t') {
    throw BadRequest{400, "a header continues on a second line, which is obsolete"};
  }
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
    throw BadRequest{400, "malformed header name"};
  }
  head.request.headers.emplace_back(lower_case(line.substr(0, colon)),
                                    trimmed(line.substr(colon + 1), blanks));
}

std::uint64_t parse_length(std::string_view digits) {
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) {
    throw BadRequest{400, "Content-Length must be a decimal number"};
  }
  if (digits.size() > 18) throw BadRequest{413, "Content-Length is far too large"};
  std::uint64_t length = 0;
  for (const char digit : digits) length = length * 10 + static_cast<std::uint64_t>(digit - '0');
  return length;
}

std::size_t count_of(const Headers& headers, std::string_view name) {
  return static_cast<std::size_t>(std::count_if(headers.begin(), headers.end(),
                                                [&](const auto& header) { return header.first == name; }));
}

// How the body is delimited. A length given twice, or in two ways, is how requests are smuggled.
void read_framing(RequestHead& head) {
  const HttpRequest& request = head.request;
  const std::size_t lengths = count_of(request.headers, "content-length");
  const std::size_t codings = count_of(request.headers, "transfer-encoding");
  if (lengths > 1) throw BadRequest{400, "Content-Length is given twice"};
  if (codings > 0 && lengths > 0) {
    throw BadRequest{400, "Content-Length and Transfer-Encoding exclude each other"};
  }
  if (codings > 0) {
    if (head.is_http10) throw BadRequest{400, "HTTP/1.0 has no Transfer-Encoding"};
    if (codings > 1 || lower_case(request.header("transfer-encoding")) != "chunked") {
      throw BadRequest{400, "Transfer-Encoding must be chunked and nothing else"};
    }
    head.is_chunked = true;
  }
  if (lengths == 1) head.content_length = parse_length(request.header("content-length"));
}

void read_host(RequestHead& head, std::string authority) {
  Headers& headers = head.request.headers;
  const std::size_t hosts = count_of(headers, "host");
  if (hosts > 1) throw BadRequest{400, "Host is given twice"};
  if (hosts == 0 && !head.is_http10) throw BadRequest{400, "the Host header is missing"};
  if (authority.empty()) return;
  for (auto& [name, value] : headers) {
    if (name == "host") value = authority;
  }
  if (hosts == 0) headers.emplace_back("host", std::move(authority));
}

void read_connection(RequestHead& head) {
  bool close = false, keep = false;
  for (const auto& [name, value] : head.request.headers) {
    if (name == "connection") {
      close = close || lists(value, "close");
      keep = keep || lists(value, "keep-alive");
    } else if (name == "expect" && !head.is_http10) {
      if (lower_case(value) != "100-continue")
        throw BadRequest{417, "only Expect: 100-continue is supported"};
      head.expects_continue = true;
    }
  }
  head.keep_alive = !close && (keep || !head.is_http10);
}

}  // namespace

bool lists(std::string_view value, std::string_view member) {
  while (!value.empty()) {
    const std::size_t comma = std::min(value.find(','), value.size());
    if (lower_case(trimmed(value.substr(0, comma), blanks)) == member) return true;
    value.remove_prefix(std::min(comma + 1, value.size()));
  }
  return false;
}

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

std::optional<std::size_t> HeadScanner::find_end(std::string_view input) {
  const std::size_t end = std::min(input.size(), limits_.max_head);
  for (; scanned_ < end; ++scanned_) {
    const char c = input[scanned_];
    const bool follows_return = scanned_ > 0 && input[scanned_ - 1] == '\r';
    if (c == '\n') {
      if (!follows_return) throw BadRequest{400, "a line ends without a carriage return"};
      const bool is_empty_line = scanned_ == 1 || input[scanned_ - 2] == '\n';
      if (is_empty_line) return scanned_ + 1;
      if (first_line_ == 0) first_line_ = scanned_ + 1;
    } else if (follows_return) {
      throw BadRequest{400, "a carriage return within a line"};
    } else if (is_control(c) && c != '\r' && c != '\t') {
      throw BadRequest{400, "a control character in the request head"};
    } else if (first_line_ == 0 && scanned_ >= limits_.max_target + around_target) {
      throw BadRequest{414, fmt::format("the request target is longer than {} bytes", limits_.max_target)};
    }
  }
  if (input.size() >= limits_.max_head) {
    throw BadRequest{431, fmt::format("the request head is longer than {} bytes", limits_.max_head)};
  }
  return std::nullopt;
}

RequestHead parse_head(std::string_view head, HeadLimits limits) {
  RequestHead result;
  std::string authority;
  bool is_first = true;
  while (true) {
    const std::size_t end = head.find("\r\n");
    if (end == std::string_view::npos) throw BadRequest{400, "the request head has no end"};
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end + 2);
    if (is_first) {
      read_request_line(result, line, limits.max_target, authority);
      is_first = false;
    } else if (line.empty()) {
      break;
    } else if (result.request.headers.size() == limits.max_headers) {
      throw BadRequest{431, fmt::format("the request has more than {} headers", limits.max_headers)};
    } else {
      read_header(result, line);
    }
  }
  read_framing(result);
  read_host(result, std::move(authority));
  read_connection(result);
  return result;
}

}  // namespace inferno::server
