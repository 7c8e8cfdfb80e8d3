#include "cli/bench/load/event_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace inferno::load {
namespace {

constexpr std::size_t max_body = std::size_t{16} << 20;
constexpr std::size_t max_framing = std::size_t{64} << 10;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// The value of a header in a head whose letters are all lower case; empty if there is none.
std::string_view header(std::string_view head, std::string_view name) {
  std::size_t at = head.find(fmt::format("\r\n{}:", name));
  if (at == std::string_view::npos) return {};
  at += name.size() + 3;
  std::string_view value = head.substr(at, head.find("\r\n", at) - at);
  while (value.starts_with(' ')) value.remove_prefix(1);
  return value;
}

// What follows `"key":` without spaces; empty if the key does not occur.
std::string_view value_after(std::string_view json, std::string_view key) {
  const std::size_t at = json.find(key);
  if (at == std::string_view::npos) return {};
  json.remove_prefix(at + key.size());
  while (json.starts_with(':') || json.starts_with(' ')) json.remove_prefix(1);
  return json;
}

bool has_text(std::string_view json) {
  for (const std::string_view key :
       {"\"text\"", "\"content\"", "\"reasoning_content\"", "\"reasoning\"", "\"arguments\"", "\"name\""}) {
    const std::string_view value = value_after(json, key);
    if (value.size() > 1 && value[0] == '"' && value[1] != '"') return true;
  }
  return false;
}

}  // namespace

void EventStream::read(std::string_view bytes) {
  while (!bytes.empty() && !is_whole_ && problem_.empty()) {
    switch (part_) {
      case Part::head:
      case Part::size:
      case Part::chunk_end:
      case Part::trailer: bytes = take_framing(bytes); break;
      case Part::chunk:
      case Part::counted: {
        const std::size_t count = std::min(left_, bytes.size());
        take_body(bytes.substr(0, count));
        bytes.remove_prefix(count);
        left_ -= count;
        if (left_ > 0) break;
        if (part_ == Part::counted) is_whole_ = true;
        part_ = Part::chunk_end;
        break;
      }
      case Part::rest:
        take_body(bytes);
        bytes = {};
        break;
    }
  }
}

void EventStream::close() {
  if (part_ == Part::rest) is_whole_ = true;
}

// Collects one line, or the whole head, and acts on it.
std::string_view EventStream::take_framing(std::string_view bytes) {
  const std::string_view end = part_ == Part::head ? "\r\n\r\n" : "\n";
  const std::size_t known = framing_.size();
  framing_ += bytes;
  const std::size_t at = framing_.find(end, known < end.size() ? 0 : known - end.size() + 1);
  if (at == std::string::npos) {
    if (framing_.size() > max_framing) problem_ = "the response is not HTTP: a line does not end";
    return {};
  }
  bytes.remove_prefix(at + end.size() - known);
  framing_.resize(at + (part_ == Part::head ? 2 : 0));
  if (framing_.ends_with('\r')) framing_.pop_back();
  switch (part_) {
    case Part::head: take_head(); break;
    case Part::size: {
      const auto [stop, error] =
          std::from_chars(framing_.data(), framing_.data() + framing_.size(), left_, 16);
      if (error != std::errc() || stop == framing_.data()) problem_ = "malformed chunk in the response";
      part_ = left_ == 0 ? Part::trailer : Part::chunk;
      break;
    }
    case Part::chunk_end: part_ = Part::size; break;
    case Part::trailer: is_whole_ = framing_.empty(); break;
    case Part::chunk:
    case Part::counted:
    case Part::rest: break;
  }
  framing_.clear();
  return bytes;
}

void EventStream::take_head() {
  std::ranges::transform(framing_, framing_.begin(), lower);
  const std::string_view head = framing_;
  int status = 0;
  if (head.starts_with("http/1.") && head.size() > 12) {
    std::from_chars(head.data() + 9, head.data() + 12, status);
  }
  if (status < 100) {
    problem_ = "the response is not HTTP";
    return;
  }
  if (status < 200) return;  // 100 Continue: the real head follows
  status_ = status;
  has_events_ = header(head, "content-type").starts_with("text/event-stream");
  const std::string_view length = header(head, "content-length");
  if (header(head, "transfer-encoding").find("chunked") != std::string_view::npos) {
    part_ = Part::size;
  } else if (!length.empty()) {
    part_ = Part::counted;
    std::from_chars(length.data(), length.data() + length.size(), left_);
    is_whole_ = left_ == 0;
  } else {
    part_ = Part::rest;
  }
}

void EventStream::take_body(std::string_view bytes) {
  if (!has_events_) {
    body_ += bytes.substr(0, max_body - std::min(max_body, body_.size()));
    return;
  }
  while (!bytes.empty()) {
    const std::size_t at = bytes.find('\n');
    if (at == std::string_view::npos) {
      line_ += bytes;
      return;
    }
    if (line_.empty()) {
      take_line(bytes.substr(0, at));
    } else {
      line_ += bytes.substr(0, at);
      take_line(line_);
      line_.clear();
    }
    bytes.remove_prefix(at + 1);
  }
}

void EventStream::take_line(std::string_view line) {
  if (!line.starts_with("data:")) return;
  line.remove_prefix(5);
  while (line.starts_with(' ')) line.remove_prefix(1);
  while (line.ends_with('\r')) line.remove_suffix(1);
  if (line.starts_with("[DONE]")) {
    saw_end_ = true;
    return;
  }
  const std::string_view error = value_after(line, "\"error\"");
  if (line.starts_with("{\"error\"") && error.starts_with('{')) {
    problem_ = line;
    return;
  }
  if (has_text(line)) ++text_events_;
  if (value_after(line, "\"usage\"").starts_with('{')) usage_event_ = line;
}

}  // namespace inferno::load
