// Writes the responses of one connection as bytes: heads, framing, chunks.
#pragma once

#include <chrono>
#include <ctime>
#include <string>
#include <string_view>

#include "server/http/message.h"
#include "server/http/request_head.h"

namespace inferno::server {

class ResponseEncoder {
 public:
  // Appends to `out`. `idle_timeout` is told to clients, which then do not reuse a connection too late.
  ResponseEncoder(std::string& out, std::chrono::milliseconds idle_timeout)
      : out_(out), idle_timeout_(idle_timeout) {}

  void expect_response_to(const RequestHead& head);  // before each response
  void close_after_response() { keep_alive_ = false; }

  void respond(const HttpResponse& response);
  // A response in pieces. The head is written with the first piece or the end.
  void begin(const HttpResponse& head);
  void write(std::string_view piece);
  void finish();

  // Writes bytes that fit any response to come, to see whether the client still reads: the beginning of the
  // status line, or `ping` within a stream. Nothing once the response is complete.
  void probe(std::string_view ping);

  bool has_head() const { return has_head_; }  // of the response: it cannot become another one
  bool is_stream() const { return is_stream_; }
  bool is_complete() const { return is_complete_; }
  // Whether the connection can be used for another request; false if the handler asked for Connection: close.
  bool keep_alive() const { return keep_alive_; }

 private:
  std::string head_text(const HttpResponse& response, std::string_view framing);
  void write_head(std::string_view head);

  std::string& out_;
  std::chrono::milliseconds idle_timeout_;
  std::string stream_head_;
  bool is_http10_ = false, sends_body_ = true, keep_alive_ = true;
  bool is_stream_ = false, is_chunked_ = false, is_complete_ = false;
  bool has_head_ = false, has_prefix_ = false;
};

std::string http_date(std::time_t time);

}  // namespace inferno::server
