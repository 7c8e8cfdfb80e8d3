#include "cli/terminal/markdown/word_wrap.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/utf8.h"
#include "cli/terminal/styled_text.h"

namespace inferno::terminal {
namespace {

constexpr std::size_t max_mark = 24;  // bytes of a line that may be blanks and the mark of a list item
constexpr int tab_stop = 8;

// Punctuation that never begins a row: it stays with the character before it.
constexpr std::array closing = {",",  ".",  ";",  ":",  "!",  "?",  ")",  "]",  "}",
                                "\"", "'",  "、", "。", "，", "．", "！", "？", "：",
                                "；", "）", "」", "』", "】", "》", "〉", "”",  "’"};

int blank_columns(int column, std::string_view blanks) {
  const int before = column;
  for (const char blank : blanks) column = blank == '\t' ? (column / tab_stop + 1) * tab_stop : column + 1;
  return column - before;
}

bool is_ascii(char byte) {
  return static_cast<unsigned char>(byte) < 0x80;
}

// The length without a character at the end whose last bytes are missing.
std::size_t whole_characters(std::string_view text) {
  if (text.empty()) return 0;
  const std::size_t last = utf8::previous(text, text.size());
  return utf8::length_from_first_byte(text[last]) > text.size() - last ? last : text.size();
}

}  // namespace

void WordWrap::push(std::string_view text) {
  for (const char byte : text) {
    if (columns_ <= 0 || is_kept_) {
      out_ += byte;
      if (byte == '\n') end_line();
      continue;
    }
    if (byte == '\n') {
      place_word();
      out_ += spaces_ + "\n";
      end_line();
      continue;
    }
    if (line_.size() < max_mark) line_ += byte;
    if (byte == ' ' || byte == '\t') {
      place_word();
      spaces_ += byte;
    } else {
      word_ += byte;
    }
  }
}

void WordWrap::style(std::string_view sequence) {
  (spaces_.empty() && word_.empty() ? out_ : word_) += sequence;
}

void WordWrap::keep_line() {
  place_word();
  out_ += spaces_;
  spaces_.clear();
  is_kept_ = true;
}

std::string WordWrap::take() {
  if (columns_ > 0 && !is_kept_) place_decided();
  std::string out;
  out.swap(out_);
  return out;
}

std::string WordWrap::finish() {
  place_word();
  out_ += spaces_;
  end_line();
  return take();
}

void WordWrap::end_line() {
  line_.clear();
  spaces_.clear();
  column_ = 0;
  has_text_ = is_kept_ = is_glued_ = was_wide_ = false;
}

// Places what further letters cannot change: text between wide characters, which may be broken anywhere; a
// word at the beginning of a row; and a word that is wider than the screen.
void WordWrap::place_decided() {
  const std::string_view word = std::string_view(word_).substr(0, whole_characters(word_));
  std::size_t begin = 0;
  bool was_wide = was_wide_;
  int width = 0;
  const auto place_until = [&](std::size_t end) {
    place(word.substr(begin, end - begin));
    begin = end;
    width = 0;
    was_wide_ = was_wide;
  };
  for (std::size_t at = 0; at < word.size();) {
    const StyledStep step = styled_step(word, at);
    const bool is_wide = step.columns > 1;
    const bool is_closing = std::ranges::find(closing, word.substr(at, step.end - at)) != closing.end();
    if (width == 0 && was_wide && is_closing) is_glued_ = true;
    // A mark that follows may belong to the last character.
    if (step.end == word.size() && !is_ascii(word.back())) break;
    if (!step.is_style && width > 0 && (is_wide || was_wide) && !is_closing) {
      place_until(at);
      is_glued_ = false;
    }
    width += step.columns;
    if (!step.is_style) was_wide = is_wide;
    at = step.end;
    if (width == 0 || (has_text_ && !is_glued_ && width < columns_)) continue;
    place_until(at);
    is_glued_ = !is_wide;
  }
  word_.erase(0, begin);
}

void WordWrap::place_word() {
  if (columns_ > 0 && !is_kept_) place_decided();
  if (!word_.empty()) place(word_);
  word_.clear();
  is_glued_ = was_wide_ = false;
}

void WordWrap::place(std::string_view piece) {
  const int width = styled_columns(piece);
  const int gap = blank_columns(column_, spaces_);
  if (has_text_ && !is_glued_ && width > 0 && column_ + gap + width > columns_) {
    column_ = indent();
    out_ += "\n" + std::string(static_cast<std::size_t>(column_), ' ');
  } else {
    out_ += spaces_;
    column_ += gap;
  }
  spaces_.clear();
  out_ += piece;
  column_ += width;
  // The terminal breaks a word that is wider than the screen.
  if (column_ > columns_) column_ = columns_ > 0 ? (column_ - 1) % columns_ + 1 : 0;
  has_text_ = has_text_ || width > 0;
}

// Rows of a list item begin below its text: after "  - ", "12. " or "> ".
int WordWrap::indent() const {
  const std::size_t mark = std::min(line_.find_first_not_of(' '), line_.size());
  std::size_t end = mark;
  while (end < line_.size() && std::isdigit(static_cast<unsigned char>(line_[end])) != 0) ++end;
  const std::string_view ends = end > mark ? ".)" : "-*+>";
  const bool is_marked =
      end + 1 < line_.size() && ends.find(line_[end]) != std::string_view::npos && line_[end + 1] == ' ';
  const int columns = static_cast<int>(is_marked ? end + 2 : mark);
  return 2 * columns <= columns_ ? columns : 0;
}

std::string wrapped(std::string_view text, int screen_columns) {
  WordWrap wrap(screen_columns);
  wrap.push(text);
  return wrap.finish();
}

}  // namespace inferno::terminal
