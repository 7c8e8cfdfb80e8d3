#include "chat/jinja/string_functions.h"

#include <algorithm>

#include "chat/jinja/printing.h"
#include "chat/jinja/string_search.h"
#include "chat/jinja/unicode.h"

namespace inferno::jinja {
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

// The parts of a split, counted while they gather: a part costs more than the character it may hold.
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

// Python inserts the replacement before every character and at the end.
Text replace_nothing(Meter& meter, const Text& text, const Text& new_text, std::int64_t count) {
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

// How str.title() and str.swapcase() see one character after another.
class CaseChanger {
 public:
  explicit CaseChanger(Case wanted) : wanted_(wanted) {}

  void operator()(std::string& out, char32_t value, std::string_view) {
    const bool cased = is_upper(value) || is_lower(value) || is_title(value);
    switch (wanted_) {
      case Case::upper: append_upper(out, value); break;
      case Case::lower: append_lower(out, value); break;
      case Case::folded: append_folded(out, value); break;
      case Case::swapped: is_upper(value) ? append_lower(out, value) : append_upper(out, value); break;
      case Case::capital: first_ ? append_title(out, value) : append_lower(out, value); break;
      case Case::title: after_cased_ ? append_lower(out, value) : append_title(out, value); break;
    }
    first_ = false;
    after_cased_ = cased;
  }

 private:
  Case wanted_;
  bool first_ = true;
  bool after_cased_ = false;
};

bool is_cased(char32_t value) {
  return is_upper(value) || is_lower(value) || is_title(value);
}

// Whether the sigma at `at` ends a word: a letter before it and none after it.
bool is_final_sigma(std::string_view view, std::size_t at, std::size_t bytes) {
  const bool after_letter = at > 0 && is_cased(code_point_before(view, at).value);
  const std::size_t next = at + bytes;
  return after_letter && (next >= view.size() || !is_cased(code_point_at(view, next).value));
}

// Capital sigma becomes another letter at the end of a word, the one case mapping that looks around.
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
  if (pattern.empty()) return replace_nothing(meter, text, new_text, count);
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
      meter.take(meter.budgets().heap_bytes + 1);
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
