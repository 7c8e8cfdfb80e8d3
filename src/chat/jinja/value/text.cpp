#include "chat/jinja/value/text.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/utf8.h"
#include "chat/jinja/value/unicode_tables.h"

namespace inferno::jinja {
namespace {

template <class Row>
const Row* find_row(std::span<const Row> table, char32_t value) {
  const auto after = std::upper_bound(table.begin(), table.end(), value,
                                      [](char32_t wanted, const Row& row) { return wanted < row.first; });
  if (after == table.begin()) return nullptr;
  const Row& row = *(after - 1);
  return value <= row.last && (value - row.first) % row.stride == 0 ? &row : nullptr;
}

bool is_in(std::span<const unicode::Range> table, char32_t value) {
  return find_row(table, value) != nullptr;
}

// False if the tables do not contain the character.
bool append_mapped(std::string& out, char32_t value, std::span<const unicode::Shift> shifts,
                   std::span<const unicode::Expansion> expansions) {
  if (const auto* shift = find_row(shifts, value)) {
    utf8::append(out, static_cast<char32_t>(static_cast<std::int32_t>(value) + shift->by));
    return true;
  }
  const auto found =
      std::lower_bound(expansions.begin(), expansions.end(), value,
                       [](const unicode::Expansion& row, char32_t wanted) { return row.from < wanted; });
  if (found == expansions.end() || found->from != value) return false;
  for (const char32_t part : found->to) {
    if (part != 0) utf8::append(out, part);
  }
  return true;
}

}  // namespace

CodePoint code_point_at(std::string_view text, std::size_t offset) {
  const auto [code, length] = utf8::decode(text, offset);
  return {code, length == 0 ? 1 : static_cast<std::size_t>(length)};
}

CodePoint code_point_before(std::string_view text, std::size_t offset) {
  const std::size_t start = utf8::previous(text, offset);
  return {code_point_at(text.substr(0, offset), start).value, offset - start};
}

std::size_t code_point_count(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !utf8::is_continuation(byte); }));
}

std::size_t offset_of(std::string_view text, std::size_t index) {
  std::size_t at = 0;
  for (; index > 0 && at < text.size(); --index) at += utf8::length_from_first_byte(text[at]);
  return at;
}

bool is_space(char32_t value) {
  if (value < 0x80)
    return value == 0x20 || (value >= 0x09 && value <= 0x0D) || (value >= 0x1C && value <= 0x1F);
  return value == 0x85 || value == 0xA0 || value == 0x1680 || (value >= 0x2000 && value <= 0x200A) ||
         value == 0x2028 || value == 0x2029 || value == 0x202F || value == 0x205F || value == 0x3000;
}

bool is_alpha(char32_t value) {
  return is_in(unicode::alpha_ranges, value);
}
bool is_decimal(char32_t value) {
  return is_in(unicode::decimal_ranges, value);
}
int decimal_value(char32_t value) {
  // Unicode encodes the ten digits of a script consecutively, so every range begins with a zero.
  const auto* row = find_row(std::span<const unicode::Range>(unicode::decimal_ranges), value);
  return row == nullptr ? 0 : static_cast<int>((value - row->first) % 10);
}
bool is_digit(char32_t value) {
  return is_in(unicode::digit_ranges, value);
}
bool is_numeric(char32_t value) {
  return is_in(unicode::numeric_ranges, value);
}
bool is_alnum(char32_t value) {
  return is_alpha(value) || is_numeric(value);
}
bool is_upper(char32_t value) {
  return is_in(unicode::upper_ranges, value);
}
bool is_lower(char32_t value) {
  return is_in(unicode::lower_ranges, value);
}
bool is_title(char32_t value) {
  return is_in(unicode::title_ranges, value);
}
bool is_printable(char32_t value) {
  if (value < 0x7F) return value >= 0x20;
  return is_in(unicode::printable_ranges, value);
}

void append_upper(std::string& out, char32_t value) {
  if (value < 0x80) {
    out += static_cast<char>(value >= U'a' && value <= U'z' ? value - 32 : value);
  } else if (!append_mapped(out, value, unicode::to_upper_shifts, unicode::to_upper_expansions)) {
    utf8::append(out, value);
  }
}

void append_lower(std::string& out, char32_t value) {
  if (value < 0x80) {
    out += static_cast<char>(value >= U'A' && value <= U'Z' ? value + 32 : value);
  } else if (!append_mapped(out, value, unicode::to_lower_shifts, unicode::to_lower_expansions)) {
    utf8::append(out, value);
  }
}

void append_title(std::string& out, char32_t value) {
  if (!append_mapped(out, value, unicode::to_title_shifts, unicode::to_title_expansions)) {
    append_upper(out, value);
  }
}

void append_folded(std::string& out, char32_t value) {
  if (!append_mapped(out, value, unicode::to_folded_shifts, unicode::to_folded_expansions)) {
    append_lower(out, value);
  }
}

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
  for_each_run([&](std::string_view, Origin origin) { found = found || origin == Origin::user; });
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
    // Only a text that has grown before doubles: most texts are written once and need no spare capacity.
    const std::size_t capacity = owns_the_end ? std::max(needed, target->bytes.capacity() * 2) : needed;
    target->charge.resize(sizeof(Buffer) + capacity + target->runs.capacity() * sizeof(Run));
    target->bytes.reserve(capacity);
  }
  if (owns_the_end) return;
  meter.touch(size_);
  for_each_run([&](std::string_view bytes, Origin origin) {
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
  const Text kept = other;  // `other` may share the buffer that is about to grow
  meter.touch(kept.size_);
  make_growable(meter, kept.size_);
  kept.for_each_run([&](std::string_view bytes, Origin origin) {
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

std::size_t find_text(std::string_view text, std::string_view pattern, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (pattern.empty()) return from;
  if (pattern.size() > text.size() - from) return std::string_view::npos;
  // glibc's memmem is the two-way algorithm; std::string_view::find is quadratic at worst.
  const void* found = memmem(text.data() + from, text.size() - from, pattern.data(), pattern.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

// Knuth-Morris-Pratt on the reversed pattern and text.
std::size_t find_last_text(std::string_view text, std::string_view pattern) {
  const std::size_t size = pattern.size();
  if (size == 0) return text.size();
  if (size > text.size()) return std::string_view::npos;
  const auto wanted = [&](std::size_t i) { return pattern[size - 1 - i]; };
  std::vector<std::size_t> border(size, 0);
  for (std::size_t i = 1, matched = 0; i < size; ++i) {
    while (matched > 0 && wanted(i) != wanted(matched)) matched = border[matched - 1];
    if (wanted(i) == wanted(matched)) ++matched;
    border[i] = matched;
  }
  for (std::size_t i = text.size(), matched = 0; i-- > 0;) {
    while (matched > 0 && text[i] != wanted(matched)) matched = border[matched - 1];
    if (text[i] == wanted(matched)) ++matched;
    if (matched == size) return i;
  }
  return std::string_view::npos;
}

namespace {

class CharacterSet {
 public:
  explicit CharacterSet(const Text* characters) : spaces_(characters == nullptr) {
    if (spaces_) return;
    const std::string_view view = characters->view();
    for (std::size_t at = 0; at < view.size();) {
      const CodePoint point = code_point_at(view, at);
      members_.push_back(point.value);
      at += point.bytes;
    }
    std::sort(members_.begin(), members_.end());
  }
  bool has(char32_t value) const {
    return spaces_ ? is_space(value) : std::binary_search(members_.begin(), members_.end(), value);
  }

 private:
  bool spaces_;
  std::vector<char32_t> members_;
};

// The parts of a split, charged as they are added: a part takes more memory than the character it may hold.
class Parts {
 public:
  explicit Parts(Meter& meter) : meter_(meter), charge_(&meter, 0) {}
  void add(Text part) {
    meter_.step();
    if (items_.size() == items_.capacity()) {
      const std::size_t capacity = std::max<std::size_t>(8, items_.capacity() * 2);
      charge_.resize(capacity * sizeof(Text));
      items_.reserve(capacity);
    }
    items_.push_back(std::move(part));
  }
  std::int64_t count() const { return static_cast<std::int64_t>(items_.size()); }
  std::vector<Text> take() { return std::move(items_); }
  std::vector<Text> take_reversed() {
    std::reverse(items_.begin(), items_.end());
    return std::move(items_);
  }

 private:
  Meter& meter_;
  HeapCharge charge_;
  std::vector<Text> items_;
};

bool ends_line(char32_t value) {
  return (value >= 0x0A && value <= 0x0D) || (value >= 0x1C && value <= 0x1E) || value == 0x85 ||
         value == 0x2028 || value == 0x2029;
}

std::size_t skip(std::string_view view, std::size_t at, bool spaces) {
  while (at < view.size()) {
    const CodePoint point = code_point_at(view, at);
    if (is_space(point.value) != spaces) break;
    at += point.bytes;
  }
  return at;
}

std::size_t skip_back(std::string_view view, std::size_t at, bool spaces) {
  while (at > 0) {
    const CodePoint point = code_point_before(view, at);
    if (is_space(point.value) != spaces) break;
    at -= point.bytes;
  }
  return at;
}

std::vector<Text> split_words(Meter& meter, const Text& text, std::int64_t limit) {
  const std::string_view view = text.view();
  Parts parts(meter);
  std::size_t at = skip(view, 0, true);
  while (at < view.size()) {
    if (limit >= 0 && parts.count() == limit) {
      parts.add(text.slice(at, view.size() - at));
      break;
    }
    const std::size_t end = skip(view, at, false);
    parts.add(text.slice(at, end - at));
    at = skip(view, end, true);
  }
  return parts.take();
}

std::vector<Text> split_words_from_right(Meter& meter, const Text& text, std::int64_t limit) {
  const std::string_view view = text.view();
  Parts parts(meter);
  std::size_t end = skip_back(view, view.size(), true);
  while (end > 0) {
    if (limit >= 0 && parts.count() == limit) {
      parts.add(text.slice(0, end));
      break;
    }
    const std::size_t at = skip_back(view, end, false);
    parts.add(text.slice(at, end - at));
    end = skip_back(view, at, true);
  }
  return parts.take_reversed();
}

// "".replace: Python inserts the new text before every character and at the end.
Text insert_everywhere(Meter& meter, const Text& text, const Text& new_text, std::int64_t count) {
  const std::string_view view = text.view();
  Text result;
  std::size_t at = 0;
  for (std::int64_t done = 0; count < 0 || done < count; ++done) {
    result.append(meter, new_text);
    if (at >= view.size()) return result;
    const std::size_t bytes = code_point_at(view, at).bytes;
    result.append(meter, text.slice(at, bytes));
    at += bytes;
  }
  result.append(meter, text.slice(at, view.size() - at));
  return result;
}

bool is_cased(char32_t value) {
  return is_upper(value) || is_lower(value) || is_title(value);
}

// Converts one character after another; str.title() and str.capitalize() depend on the previous one.
class CaseChanger {
 public:
  explicit CaseChanger(Case wanted) : wanted_(wanted) {}

  void operator()(std::string& out, char32_t value, std::string_view) {
    switch (wanted_) {
      case Case::upper: append_upper(out, value); break;
      case Case::lower: append_lower(out, value); break;
      case Case::folded: append_folded(out, value); break;
      case Case::swapped: is_upper(value) ? append_lower(out, value) : append_upper(out, value); break;
      case Case::capital: first_ ? append_title(out, value) : append_lower(out, value); break;
      case Case::title: after_cased_ ? append_lower(out, value) : append_title(out, value); break;
    }
    first_ = false;
    after_cased_ = is_cased(value);
  }

 private:
  Case wanted_;
  bool first_ = true;
  bool after_cased_ = false;
};

// Whether the sigma at `at` ends a word: a letter precedes it and none follows.
bool is_final_sigma(std::string_view view, std::size_t at, std::size_t bytes) {
  const bool after_letter = at > 0 && is_cased(code_point_before(view, at).value);
  const std::size_t next = at + bytes;
  return after_letter && (next >= view.size() || !is_cased(code_point_at(view, next).value));
}

// Lower-case sigma has a second form at the end of a word: the only case mapping that depends on context.
Text change_case_of_greek(Meter& meter, const Text& text, Case wanted) {
  const std::string whole(text.view());
  CaseChanger change(wanted);
  std::size_t at = 0;
  return map_characters(meter, text, [&](std::string& out, char32_t value, std::string_view as_written) {
    std::string changed;
    change(changed, value, as_written);
    const bool is_final = value == 0x3A3 && is_final_sigma(whole, at, as_written.size());
    out += is_final && changed == "\u03C3" ? "\u03C2" : changed;
    at += as_written.size();
  });
}

}  // namespace

Text strip(Meter& meter, const Text& text, const Text* characters, Side side) {
  const std::string_view view = text.view();
  const CharacterSet set(characters);
  meter.touch(characters == nullptr ? 0 : characters->size());
  std::size_t from = 0;
  std::size_t to = view.size();
  while (side != Side::right && from < to) {
    const CodePoint point = code_point_at(view, from);
    if (!set.has(point.value)) break;
    from += point.bytes;
  }
  while (side != Side::left && to > from) {
    const CodePoint point = code_point_before(view, to);
    if (!set.has(point.value)) break;
    to -= point.bytes;
  }
  meter.touch(view.size() - (to - from));
  return text.slice(from, to - from);
}

Text replace_text(Meter& meter, const Text& text, const Text& old_text, const Text& new_text,
                  std::int64_t count) {
  const std::string_view view = text.view();
  const std::string_view pattern = old_text.view();
  if (pattern.empty()) return insert_everywhere(meter, text, new_text, count);
  meter.touch(view.size());
  std::size_t found = find_text(view, pattern, 0);
  if (found == std::string_view::npos || count == 0) return text;
  Text result;
  std::size_t at = 0;
  for (std::int64_t done = 0; found != std::string_view::npos && (count < 0 || done < count); ++done) {
    meter.step();
    result.append(meter, text.slice(at, found - at));
    result.append(meter, new_text);
    at = found + pattern.size();
    found = find_text(view, pattern, at);
  }
  result.append(meter, text.slice(at, view.size() - at));
  return result;
}

Text change_case(Meter& meter, const Text& text, Case wanted) {
  constexpr std::string_view capital_sigma = "\u03A3";
  const bool has_sigma = find_text(text.view(), capital_sigma, 0) != std::string_view::npos;
  const bool lowers = wanted != Case::upper && wanted != Case::folded;
  if (has_sigma && lowers) return change_case_of_greek(meter, text, wanted);
  return map_characters(meter, text, CaseChanger(wanted));
}

std::vector<Text> split(Meter& meter, const Text& text, const Text* separator, std::int64_t limit) {
  const std::string_view view = text.view();
  meter.touch(view.size());
  if (separator == nullptr) return split_words(meter, text, limit);
  Parts parts(meter);
  std::size_t at = 0;
  while (limit < 0 || parts.count() < limit) {
    const std::size_t found = find_text(view, separator->view(), at);
    if (found == std::string_view::npos) break;
    parts.add(text.slice(at, found - at));
    at = found + separator->size();
  }
  parts.add(text.slice(at, view.size() - at));
  return parts.take();
}

std::vector<Text> split_from_right(Meter& meter, const Text& text, const Text* separator,
                                   std::int64_t limit) {
  meter.touch(text.size());
  if (separator == nullptr) return split_words_from_right(meter, text, limit);
  Parts parts(meter);
  std::size_t end = text.size();
  while (limit < 0 || parts.count() < limit) {
    meter.touch(separator->size());
    const std::size_t found = find_last_text(text.view().substr(0, end), separator->view());
    if (found == std::string_view::npos) break;
    parts.add(text.slice(found + separator->size(), end - found - separator->size()));
    end = found;
  }
  parts.add(text.slice(0, end));
  return parts.take_reversed();
}

std::vector<Text> split_lines(Meter& meter, const Text& text, bool keep_ends) {
  const std::string_view view = text.view();
  meter.touch(view.size());
  Parts lines(meter);
  std::size_t start = 0;
  for (std::size_t at = 0; at < view.size();) {
    const CodePoint point = code_point_at(view, at);
    const std::size_t end = at;
    at += point.bytes;
    if (!ends_line(point.value)) continue;
    if (point.value == U'\r' && at < view.size() && view[at] == '\n') ++at;
    lines.add(text.slice(start, (keep_ends ? at : end) - start));
    start = at;
  }
  if (start < view.size()) lines.add(text.slice(start, view.size() - start));
  return lines.take();
}

Text expand_tabs(Meter& meter, const Text& text, std::int64_t size) {
  std::int64_t column = 0;
  return map_characters(meter, text, [&](std::string& out, char32_t value, std::string_view as_written) {
    if (value != U'\t') {
      out += as_written;
      column = value == U'\n' || value == U'\r' ? 0 : column + 1;
    } else if (size > 0) {
      const std::int64_t spaces = size - column % size;
      out.append(static_cast<std::size_t>(spaces), ' ');
      column += spaces;
    }
  });
}

Text pad(Meter& meter, const Text& text, std::int64_t left, std::int64_t right, std::string_view fill) {
  const auto filling = [&](std::int64_t count) {
    Text unit(meter, fill, Origin::trusted);
    Text result;
    if (count > static_cast<std::int64_t>(meter.budgets().heap_bytes)) {
      meter.allocate(meter.budgets().heap_bytes + 1);
    }
    for (; count > 0; count >>= 1) {
      if ((count & 1) != 0) result.append(meter, unit);
      if (count > 1) unit.append(meter, unit);
    }
    return result;
  };
  Text result = filling(left);
  result.append(meter, text);
  result.append(meter, filling(right));
  return result;
}

}  // namespace inferno::jinja
