#include "server/http/chunked.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/http/request_head.h"

namespace inferno::server {

namespace {

// Chunks of a few bytes would cost many times what they carry.
constexpr int max_chunks = 100'000;
constexpr int max_extension_bytes = 4096;
constexpr int max_digits = 16;

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void require(char found, char expected, const char* message) {
  if (found != expected) throw BadRequest{400, message};
}

}  // namespace

std::size_t ChunkedDecoder::decode(std::string_view input, std::string& body) {
  std::size_t at = 0;
  while (at < input.size() && state_ != State::complete) {
    if (state_ == State::data) {
      const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(size_, input.size() - at));
      body.append(input.substr(at, count));
      at += count;
      size_ -= count;
      if (size_ == 0) state_ = State::data_return;
    } else {
      take(input[at++], body);
    }
  }
  return at;
}

void ChunkedDecoder::take(char c, const std::string& body) {
  switch (state_) {
    case State::size:
      if (const int digit = hex_value(c); digit >= 0) {
        if (++digits_ > max_digits) throw BadRequest{400, "malformed chunk size"};
        size_ = size_ * 16 + static_cast<std::uint64_t>(digit);
      } else if (digits_ > 0 && (c == '\r' || c == ';')) {
        state_ = c == '\r' ? State::size_end : State::extension;
      } else {
        throw BadRequest{400, "malformed chunk size"};
      }
      return;
    case State::extension:
      if (c == '\r') {
        state_ = State::size_end;
      } else if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == '\x7F' ||
                 ++extension_bytes_ > max_extension_bytes) {
        throw BadRequest{400, "malformed chunk extension"};
      }
      return;
    case State::size_end:
      require(c, '\n', "malformed chunk size");
      begin_chunk(body);
      return;
    case State::data_return:
      require(c, '\r', "a chunk is longer than its size");
      state_ = State::data_end;
      return;
    case State::data_end:
      require(c, '\n', "a chunk is longer than its size");
      state_ = State::size;
      return;
    case State::last_return:
      require(c, '\r', "trailers after a chunked body are not supported");
      state_ = State::last_end;
      return;
    case State::last_end:
      require(c, '\n', "malformed end of a chunked body");
      state_ = State::complete;
      return;
    case State::data:
    case State::complete: return;
  }
}

void ChunkedDecoder::begin_chunk(const std::string& body) {
  digits_ = 0;
  if (size_ == 0) {
    state_ = State::last_return;
    return;
  }
  if (size_ > max_body_ - std::min(max_body_, body.size())) {
    throw BadRequest{413, fmt::format("the request body is larger than {} bytes", max_body_)};
  }
  if (++chunks_ > max_chunks) {
    throw BadRequest{413, fmt::format("the request body has more than {} chunks", max_chunks)};
  }
  state_ = State::data;
}

}  // namespace inferno::server
