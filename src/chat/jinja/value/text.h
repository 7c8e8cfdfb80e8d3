// Strings as Python has them: characters, a text that knows the origin of each byte (the template, or the
// data it was given), and what str's methods do with it. The tokenizer recognises control tokens only in the
// template's bytes, so origins must survive every operation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chat/jinja/value/meter.h"

namespace inferno::jinja {

// Templates count, cut and convert code points, while texts are UTF-8.
struct CodePoint {
  char32_t value;
  std::size_t bytes;
};

// These expect valid UTF-8.
CodePoint code_point_at(std::string_view text, std::size_t offset);
CodePoint code_point_before(std::string_view text, std::size_t offset);
std::size_t code_point_count(std::string_view text);
// Byte offset of the index-th code point; the size of the text if it has fewer.
std::size_t offset_of(std::string_view text, std::size_t index);

bool is_space(char32_t value);  // str.isspace, which is also what strip() and \s mean
bool is_alpha(char32_t value);
bool is_decimal(char32_t value);    // str.isdecimal: what int() accepts
int decimal_value(char32_t value);  // 0 to 9; the character must be decimal
bool is_digit(char32_t value);      // str.isdigit
bool is_numeric(char32_t value);    // str.isnumeric
bool is_alnum(char32_t value);
bool is_upper(char32_t value);
bool is_lower(char32_t value);
bool is_title(char32_t value);
bool is_printable(char32_t value);  // str.isprintable: repr() does not escape it

// Full case mappings: one character may become up to three.
void append_upper(std::string& out, char32_t value);
void append_lower(std::string& out, char32_t value);
void append_title(std::string& out, char32_t value);
void append_folded(std::string& out, char32_t value);

enum class Origin : std::uint8_t { trusted, user };

// A window into a shared buffer, hence cheap to copy and to slice. Appending to a text that ends where its
// buffer ends grows the buffer in place, so that building a text piece by piece takes linear time, as in
// CPython. Other windows into the buffer do not see the growth.
class Text {
 public:
  Text() = default;
  Text(Meter& meter, std::string_view bytes, Origin origin);

  // A constant of the template: trusted, not counted by any meter, never grown, safe to share among threads.
  static Text constant(std::string bytes);

  // Valid until the next append to a text sharing this buffer.
  std::string_view view() const;
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // [offset, offset + size) must be inside the text.
  Text slice(std::size_t offset, std::size_t size) const;
  void append(Meter& meter, const Text& other);
  void append(Meter& meter, std::string_view bytes, Origin origin);

  Origin origin_at(std::size_t offset) const;
  bool has_user_bytes() const;

  // Maximal runs of one origin, in order: visit(std::string_view, Origin). The visitor must not append to
  // this text.
  template <class Visitor>
  void for_each_run(Visitor&& visit) const {
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
  // Afterwards only this text may grow at its end, by at least `more` bytes without reallocation.
  void make_growable(Meter& meter, std::size_t more);
  void add_run(std::size_t bytes, Origin origin);

  std::shared_ptr<Buffer> buffer_;
  std::size_t offset_ = 0;
  std::size_t size_ = 0;
};

// Rewrites a text character by character, each result keeping the origin of its character:
// change(std::string& out, char32_t value, std::string_view as_written).
template <class Change>
Text map_characters(Meter& meter, const Text& text, Change&& change) {
  // One character may become a thousand, so results are handed to the meter in pieces.
  constexpr std::size_t piece_bytes = 16 << 10;
  Text result;
  meter.touch(text.size() * 8);
  text.for_each_run([&](std::string_view run, Origin origin) {
    std::string changed;
    for (std::size_t at = 0; at < run.size();) {
      const CodePoint point = code_point_at(run, at);
      change(changed, point.value, run.substr(at, point.bytes));
      at += point.bytes;
      if (changed.size() < piece_bytes) continue;
      result.append(meter, changed, origin);
      changed.clear();
    }
    result.append(meter, changed, origin);
  });
  return result;
}

// Searches in linear time for every pattern: templates and messages are untrusted, so the worst case counts.
// The first position >= from of `pattern`, or npos. An empty pattern is found everywhere.
std::size_t find_text(std::string_view text, std::string_view pattern, std::size_t from);
// The last position of `pattern`, or npos.
std::size_t find_last_text(std::string_view text, std::string_view pattern);

enum class Side : std::uint8_t { left, right, both };
enum class Case : std::uint8_t { upper, lower, capital, title, swapped, folded };

// Removes whitespace if `characters` is null.
Text strip(Meter& meter, const Text& text, const Text* characters, Side side);

// Replaces every occurrence if `count` is negative.
Text replace_text(Meter& meter, const Text& text, const Text& old_text, const Text& new_text,
                  std::int64_t count);
Text change_case(Meter& meter, const Text& text, Case wanted);

// A negative `limit` means no limit. A null separator means runs of whitespace.
std::vector<Text> split(Meter& meter, const Text& text, const Text* separator, std::int64_t limit);
std::vector<Text> split_from_right(Meter& meter, const Text& text, const Text* separator, std::int64_t limit);
std::vector<Text> split_lines(Meter& meter, const Text& text, bool keep_ends);

Text expand_tabs(Meter& meter, const Text& text, std::int64_t size);

// Adds `left` and `right` copies of `fill`, which count as the template's.
Text pad(Meter& meter, const Text& text, std::int64_t left, std::int64_t right, std::string_view fill = " ");

}  // namespace inferno::jinja
