// Decodes a request body with Transfer-Encoding: chunked, as strictly as request_head.h reads heads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace inferno::server {

class ChunkedDecoder {
 public:
  explicit ChunkedDecoder(std::size_t max_body) : max_body_(max_body) {}

  // Appends what `input` holds of the body to `body` and returns how many bytes it used: all of them, unless
  // the body ends before. BadRequest 400 if the framing is malformed or there are trailers, 413 as soon as a
  // chunk would exceed the limit or there are absurdly many chunks.
  std::size_t decode(std::string_view input, std::string& body);
  bool is_complete() const { return state_ == State::complete; }

 private:
  enum class State {
    size,
    extension,
    size_end,
    data,
    data_return,
    data_end,
    last_return,
    last_end,
    complete
  };
  void take(char c, const std::string& body);  // one byte of framing
  void begin_chunk(const std::string& body);

  std::size_t max_body_;
  State state_ = State::size;
  std::uint64_t size_ = 0;  // bytes of the chunk that are still to come
  int digits_ = 0;
  int chunks_ = 0;
  int extension_bytes_ = 0;  // of the whole body
};

}  // namespace inferno::server
