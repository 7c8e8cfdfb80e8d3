// A string that knows where each byte came from: the template, or the data it was given. The tokenizer
// recognises control tokens only in the template's bytes, so the marks must survive every operation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chat/jinja/meter.h"

namespace inferno::jinja {

enum class Origin : std::uint8_t { trusted, user };

// A window into a shared buffer, hence cheap to copy and to slice. Appending to the text that ends where
// its buffer ends grows the buffer in place, so that building a text piece by piece is linear, as it is
// in CPython. Other windows into the buffer do not see the growth.
class Text {
 public:
  Text() = default;
  Text(Meter& meter, std::string_view bytes, Origin origin);

  // A constant of the template: trusted, counted by no meter, never grown, safe to share among threads.
  static Text constant(std::string bytes);

  // Valid until the next append to a text sharing this buffer.
  std::string_view view() const;
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // [offset, offset + size) must lie inside.
  Text slice(std::size_t offset, std::size_t size) const;
  void append(Meter& meter, const Text& other);
  void append(Meter& meter, std::string_view bytes, Origin origin);

  Origin origin_at(std::size_t offset) const;
  bool has_user_bytes() const;

  // Maximal stretches of one origin, in order: visit(std::string_view, Origin). The visitor must not
  // append to this text.
  template <class Visitor>
  void for_each_stretch(Visitor&& visit) const {
    if (empty()) return;
    std::size_t from = offset_;
    for (std::size_t index = run_of(offset_); from < offset_ + size_; ++index) {
      const Run& run = buffer_->runs[index];
      const std::size_t to = run.end < offset_ + size_ ? run.end : offset_ + size_;
      visit(std::string_view(buffer_->bytes).substr(from, to - from), run.origin);
      from = to;
    }
  }

 private:
  struct Run {
    std::size_t end;
    Origin origin;
  };
  struct Buffer {
    explicit Buffer(Meter* meter) : charge(meter, sizeof(Buffer)) {}
    std::string bytes;
    std::vector<Run> runs;  // ascending ends, neighbours differ in origin
    HeapCharge charge;
    bool constant = false;
  };

  std::size_t run_of(std::size_t offset) const;
  // Afterwards this text alone may grow at its end, by at least `more` bytes without moving.
  void make_growable(Meter& meter, std::size_t more);
  void add_run(std::size_t bytes, Origin origin);

  std::shared_ptr<Buffer> buffer_;
  std::size_t offset_ = 0;
  std::size_t size_ = 0;
};

}  // namespace inferno::jinja
