#include "server/http/response.h"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <utility>

#include "base/utf8.h"

namespace inferno::server {

namespace {

// Every response begins with these bytes.
constexpr std::string_view prefix = "HTTP/1.1 ";

std::string_view reason(int status) {
  static constexpr std::pair<int, std::string_view> reasons[] = {
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {204, "No Content"},
      {301, "Moved Permanently"},
      {302, "Found"},
      {304, "Not Modified"},
      {307, "Temporary Redirect"},
      {308, "Permanent Redirect"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {406, "Not Acceptable"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {413, "Content Too Large"},
      {414, "URI Too Long"},
      {415, "Unsupported Media Type"},
      {417, "Expectation Failed"},
      {422, "Unprocessable Content"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {505, "HTTP Version Not Supported"},
      {529, "Overloaded"},
  };
  for (const auto& [code, text] : reasons) {
    if (code == status) return text;
  }
  return "Other";
}

// A line break would begin another header, or another response.
void append_one_line(std::string& out, std::string_view text) {
  for (const char c : text) out += c == '\r' || c == '\n' || c == '\0' ? ' ' : c;
}

bool is_set_by_server(std::string_view name) {
  return name == "content-length" || name == "transfer-encoding" || name == "connection" || name == "date";
}

}  // namespace

void ResponseEncoder::expect_response_to(const RequestHead& head) {
  is_http10_ = head.is_http10;
  sends_body_ = head.request.method != "HEAD";
  keep_alive_ = head.keep_alive;
  is_stream_ = is_chunked_ = is_complete_ = has_head_ = has_prefix_ = false;
  stream_head_ = {};
}

void ResponseEncoder::respond(const HttpResponse& response) {
  const bool is_empty = response.status == 204 || response.status == 304;
  const std::string length = is_empty ? "" : fmt::format("Content-Length: {}\r\n", response.body.size());
  write_head(head_text(response, length));
  if (!is_empty && sends_body_) out_ += response.body;
  is_complete_ = true;
}

void ResponseEncoder::begin(const HttpResponse& head) {
  is_stream_ = true;
  is_chunked_ = !is_http10_;
  if (!is_chunked_) keep_alive_ = false;  // the end of the connection is the end of the response
  stream_head_ = head_text(head, is_chunked_ ? "Transfer-Encoding: chunked\r\n" : "");
}

void ResponseEncoder::write(std::string_view piece) {
  if (!has_head_) write_head(stream_head_);
  if (!sends_body_ || piece.empty()) return;
  if (is_chunked_) fmt::format_to(std::back_inserter(out_), "{:x}\r\n", piece.size());
  out_ += piece;
  if (is_chunked_) out_ += "\r\n";
}

void ResponseEncoder::finish() {
  if (!has_head_) write_head(stream_head_);
  if (is_chunked_ && sends_body_) out_ += "0\r\n\r\n";
  is_complete_ = true;
}

void ResponseEncoder::probe(std::string_view ping) {
  if (has_head_) {
    if (!is_complete_) write(ping);
  } else if (!std::exchange(has_prefix_, true)) {
    out_ += prefix;
  }
}

std::string ResponseEncoder::head_text(const HttpResponse& response, std::string_view framing) {
  std::string text = fmt::format("{}{} {}\r\n", prefix, response.status, reason(response.status));
  for (const auto& [name, value] : response.headers) {
    const std::string key = lower_case(name);
    if (key == "connection" && lists(value, "close")) keep_alive_ = false;
    if (is_set_by_server(key)) continue;
    append_one_line(text, name);
    text += ": ";
    append_one_line(text, value);
    text += "\r\n";
  }
  fmt::format_to(std::back_inserter(text), "Date: {}\r\n{}", http_date(std::time(nullptr)), framing);
  if (keep_alive_) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(idle_timeout_).count();
    fmt::format_to(std::back_inserter(text), "Connection: keep-alive\r\nKeep-Alive: timeout={}\r\n\r\n",
                   seconds);
  } else {
    text += "Connection: close\r\n\r\n";
  }
  return text;
}

void ResponseEncoder::write_head(std::string_view head) {
  out_ += has_prefix_ ? head.substr(prefix.size()) : head;
  has_head_ = true;
}

std::string http_date(std::time_t time) {
  static constexpr std::array days = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm date{};
  ::gmtime_r(&time, &date);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", days.at(static_cast<std::size_t>(date.tm_wday)),
                     date.tm_mday, months.at(static_cast<std::size_t>(date.tm_mon)), date.tm_year + 1900,
                     date.tm_hour, date.tm_min, date.tm_sec);
}

}  // namespace inferno::server
