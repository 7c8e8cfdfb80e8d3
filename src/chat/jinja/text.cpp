#include "chat/jinja/text.h"

#include <algorithm>

namespace inferno::jinja {

Text::Text(Meter& meter, std::string_view bytes, Origin origin) {
  append(meter, bytes, origin);
}

Text Text::constant(std::string bytes) {
  Text text;
  if (bytes.empty()) return text;
  text.size_ = bytes.size();
  text.buffer_ = std::make_shared<Buffer>(nullptr);
  text.buffer_->bytes = std::move(bytes);
  text.buffer_->runs = {{.end = text.size_, .origin = Origin::trusted}};
  text.buffer_->constant = true;
  return text;
}

std::string_view Text::view() const {
  if (empty()) return {};
  return std::string_view(buffer_->bytes).substr(offset_, size_);
}

Text Text::slice(std::size_t offset, std::size_t size) const {
  Text part;
  if (size == 0) return part;
  part.buffer_ = buffer_;
  part.offset_ = offset_ + offset;
  part.size_ = size;
  return part;
}

std::size_t Text::run_of(std::size_t offset) const {
  const auto& runs = buffer_->runs;
  const auto found = std::upper_bound(runs.begin(), runs.end(), offset,
                                      [](std::size_t at, const Run& run) { return at < run.end; });
  return static_cast<std::size_t>(found - runs.begin());
}

Origin Text::origin_at(std::size_t offset) const {
  return buffer_->runs[run_of(offset_ + offset)].origin;
}

bool Text::has_user_bytes() const {
  bool found = false;
  for_each_stretch([&](std::string_view, Origin origin) { found = found || origin == Origin::user; });
  return found;
}

void Text::make_growable(Meter& meter, std::size_t more) {
  const bool owns_the_end = buffer_ && !buffer_->constant && offset_ + size_ == buffer_->bytes.size();
  std::shared_ptr<Buffer> target = buffer_;
  std::size_t base = offset_;
  if (!owns_the_end) {
    target = std::make_shared<Buffer>(&meter);
    base = 0;
  }
  const std::size_t needed = base + size_ + more;
  if (needed > target->bytes.capacity()) {
    // Doubling only what already grew: most texts are written once and should not carry slack.
    const std::size_t capacity = owns_the_end ? std::max(needed, target->bytes.capacity() * 2) : needed;
    target->charge.resize(sizeof(Buffer) + capacity + target->runs.capacity() * sizeof(Run));
    target->bytes.reserve(capacity);
  }
  if (owns_the_end) return;
  meter.touch(size_);
  for_each_stretch([&](std::string_view bytes, Origin origin) {
    target->bytes.append(bytes);
    target->runs.push_back({.end = target->bytes.size(), .origin = origin});
  });
  buffer_ = std::move(target);
  offset_ = 0;
}

void Text::add_run(std::size_t bytes, Origin origin) {
  auto& runs = buffer_->runs;
  size_ += bytes;
  const std::size_t end = buffer_->bytes.size();
  if (!runs.empty() && runs.back().origin == origin) {
    runs.back().end = end;
    return;
  }
  if (runs.size() == runs.capacity()) {
    const std::size_t capacity = std::max<std::size_t>(2, runs.capacity() * 2);
    buffer_->charge.resize(sizeof(Buffer) + buffer_->bytes.capacity() + capacity * sizeof(Run));
    runs.reserve(capacity);
  }
  runs.push_back({.end = end, .origin = origin});
}

void Text::append(Meter& meter, const Text& other) {
  if (other.empty()) return;
  if (empty()) {
    *this = other;
    return;
  }
  const Text kept = other;  // it may share the buffer that is about to grow
  meter.touch(kept.size_);
  make_growable(meter, kept.size_);
  kept.for_each_stretch([&](std::string_view bytes, Origin origin) {
    buffer_->bytes.append(bytes);
    add_run(bytes.size(), origin);
  });
}

void Text::append(Meter& meter, std::string_view bytes, Origin origin) {
  if (bytes.empty()) return;
  meter.touch(bytes.size());
  make_growable(meter, bytes.size());
  buffer_->bytes.append(bytes);
  add_run(bytes.size(), origin);
}

}  // namespace inferno::jinja
