#include "cli/terminal/markdown/markdown.h"

#include <algorithm>
#include <cctype>

#include "base/utf8.h"
#include "cli/terminal/markdown/table.h"

namespace inferno::terminal {
namespace {

constexpr std::size_t max_indent = 16, max_digits = 9;
constexpr std::size_t max_link = 1000, max_table_rows = 300;  // what is longer is shown as it is written

bool is_space(char byte) {
  return byte == ' ' || byte == '\t' || byte == '\n';
}

bool is_word(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0;
}

bool is_outside_ascii(char byte) {
  return static_cast<unsigned char>(byte) >= 0x80;
}

// How many times the first character is repeated.
std::size_t run_length(std::string_view text) {
  return text.empty() ? 0 : std::min(text.find_first_not_of(text.front()), text.size());
}

std::string_view without_indent(std::string_view line) {
  return line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
}

// Length of the mark ("- ", "* ", "+ ", "12. ", "3) ", "> ") at the start of `line`, 0 if there is none.
std::size_t list_mark(std::string_view line) {
  std::size_t end = 0;
  while (end < line.size() && std::isdigit(static_cast<unsigned char>(line[end])) != 0) ++end;
  const std::string_view ends = end > 0 ? ".)" : "-*+>";
  const bool marked = end + 1 < line.size() && ends.find(line[end]) != std::string_view::npos;
  return marked && line[end + 1] == ' ' ? end + 2 : 0;
}

}  // namespace

void Markdown::resize(int screen_columns) {
  columns_ = screen_columns;
  out_.resize(screen_columns);
}

std::string Markdown::push(std::string_view text) {
  for (const char byte : text) take(byte);
  return out_.take();
}

std::string Markdown::finish() {
  end_line();
  show_table();
  fence_.clear();
  highlighter_.reset();
  return out_.finish();
}

void Markdown::take(char byte) {
  if (byte == '\n') {
    const bool is_row = line_ == Line::table;
    end_line();
    // The line break of a row is shown with its table.
    if (is_row && !table_.empty()) {
      table_.back() += '\n';
    } else {
      out_.push("\n");
    }
    return;
  }
  switch (line_) {
    case Line::text: take_inline(byte); break;
    case Line::table: kept_line_ += byte; break;
    case Line::code:
      if (highlighter_) {
        kept_line_ += byte;
      } else {
        show({&byte, 1});
      }
      break;
    case Line::fence: kept_line_ += byte; [[fallthrough]];
    case Line::heading: show({&byte, 1}); break;
    case Line::undecided: {
      held_ += byte;
      const Line kind = kind_of_line();
      if (kind != Line::undecided) begin_line(kind);
      break;
    }
  }
}

Markdown::Line Markdown::kind_of_line() const {
  const std::string_view mark = without_indent(held_);
  if (mark.empty()) return held_.size() > max_indent ? Line::text : Line::undecided;
  if (fence_.empty()) return kind_of_mark(mark);
  const std::size_t run = mark.front() == fence_.front() ? run_length(mark) : 0;
  if (run >= fence_.size()) return Line::fence;
  return run == mark.size() ? Line::undecided : Line::code;
}

Markdown::Line Markdown::kind_of_mark(std::string_view mark) const {
  const std::size_t run = run_length(mark);
  switch (mark.front()) {
    case '#':
      if (run > 6) return Line::text;
      if (run == mark.size()) return Line::undecided;
      return mark[run] == ' ' ? Line::heading : Line::text;
    case '`':
    case '~':
      if (run == mark.size()) return Line::undecided;
      return run >= 3 ? Line::fence : Line::text;
    case '-':
    case '*':
    case '+':
    case '>': return mark.size() == 1 ? Line::undecided : Line::text;
    case '|': return Line::table;
    default: break;
  }
  const std::size_t digits = std::min(mark.find_first_not_of("0123456789"), mark.size());
  if (digits == 0 || digits > max_digits) return Line::text;
  return mark.size() < digits + 2 ? Line::undecided : Line::text;
}

void Markdown::begin_line(Line kind) {
  std::string beginning;
  beginning.swap(held_);
  if (kind != Line::table) show_table();
  line_ = kind;
  const std::string_view mark = without_indent(beginning);
  if (kind == Line::fence) {
    const bool opens = fence_.empty();
    const std::size_t run = run_length(mark);
    fence_ = opens ? std::string(mark.substr(0, run)) : "";
    kept_line_ = opens ? std::string(mark.substr(run)) : "";
    highlighter_.reset();
  }
  if (kind == Line::table || (kind == Line::code && highlighter_)) {
    kept_line_ = beginning;
    return;
  }
  if (kind != Line::text) {
    if (kind != Line::heading) out_.keep_line();
    restyle();
    show(beginning);
    return;
  }
  const std::size_t marked = list_mark(mark);
  if (marked > 0) {
    const std::size_t end = beginning.size() - mark.size() + marked;
    style(theme_.mark);
    out_.push(beginning.substr(0, end));
    style(theme_.plain);
    before_ = ' ';
    beginning.erase(0, end);
  }
  for (const char byte : beginning) take_inline(byte);
}

void Markdown::take_inline(char byte) {
  if (!link_.empty()) {
    take_link(byte);
    return;
  }
  if (!held_.empty() && held_.front() != byte) end_run(byte);
  if (byte == '`' || byte == '*' || byte == '_') {
    held_ += byte;
  } else if (byte == '[' && code_.empty()) {
    link_ = byte;
  } else {
    show({&byte, 1});
  }
}

// Collects "[text](address)".
void Markdown::take_link(char byte) {
  link_ += byte;
  const std::size_t end = link_.find(']');
  const bool is_text = end == std::string::npos && byte != '[';
  const bool is_address = end != std::string::npos && (link_.size() == end + 1 || link_[end + 1] == '(');
  if (link_.size() > max_link || (!is_text && !is_address)) {
    release_link();
  } else if (is_address && byte == ')') {
    std::string link;
    link.swap(link_);
    style(theme_.link);
    show(link.substr(0, end + 1));
    style(theme_.plain);
    style(theme_.address);
    show(link.substr(end + 1));
    style(theme_.plain);
    restyle();
  }
}

// What was collected is not a link: its bracket is a character like any other.
void Markdown::release_link() {
  std::string text;
  text.swap(link_);
  if (text.empty()) return;
  show(text.substr(0, 1));
  for (const char byte : text.substr(1)) take_inline(byte);
}

// Handles a finished run of marks; `next` is the character after it.
void Markdown::end_run(char next) {
  if (held_.empty()) return;
  if (held_.front() == '`') {
    end_code_run();
  } else {
    end_emphasis_run(next);
  }
  held_.clear();
}

void Markdown::end_code_run() {
  if (code_.empty()) {
    code_ = held_;
    restyle();
    show(held_);
  } else {
    show(held_);
    if (held_ != code_) return;
    code_.clear();
    restyle();
  }
}

// Follows CommonMark in the simple cases: a run opens before a word and closes after one. 2*3 and snake_case
// are not emphasis.
void Markdown::end_emphasis_run(char next) {
  const bool makes_italic = held_.size() == 1 || held_.size() == 3;
  const bool makes_bold = held_.size() == 2 || held_.size() == 3;
  const bool is_mark = code_.empty() && held_.size() <= 3;
  const bool underscore = held_.front() == '_';
  const bool after_word = is_word(before_) || (underscore && is_outside_ascii(before_));
  const bool before_word = is_word(next) || (underscore && is_outside_ascii(next));
  const bool is_open = (makes_italic && italic_) || (makes_bold && bold_);
  if (is_mark && is_open && !is_space(before_) && !(underscore && before_word)) {
    show(held_);
    bold_ = bold_ && !makes_bold;
    italic_ = italic_ && !makes_italic;
    restyle();
  } else if (is_mark && !is_open && !is_space(next) && !after_word) {
    bold_ = bold_ || makes_bold;
    italic_ = italic_ || makes_italic;
    restyle();
    show(held_);
  } else {
    show(held_);
  }
}

void Markdown::end_line() {
  if (line_ == Line::undecided && !held_.empty()) {
    const std::string_view mark = without_indent(held_);
    const bool opens = mark.starts_with("```") || mark.starts_with("~~~");
    begin_line(!fence_.empty() ? Line::code : opens ? Line::fence : Line::text);
  }
  while (!link_.empty()) release_link();
  end_run('\n');
  if (line_ == Line::fence) end_fence();
  if (line_ == Line::code && highlighter_) {
    out_.keep_line();
    out_.push(highlighter_->line(kept_line_));
  }
  if (line_ == Line::table) {
    end_table_row();
  } else {
    show_table();
  }
  kept_line_.clear();
  line_ = Line::undecided;
  code_.clear();
  bold_ = italic_ = false;
  before_ = ' ';
  restyle();
}

void Markdown::end_fence() {
  const Language* language = fence_.empty() ? nullptr : find_language(trimmed(kept_line_));
  if (language != nullptr && !theme_.plain.empty()) highlighter_.emplace(*language, theme_);
}

void Markdown::end_table_row() {
  table_.push_back(kept_line_);
  const bool is_table = table_.size() < 2 || is_delimiter_row(table_[1]);
  if (!is_table || table_.size() >= max_table_rows) show_table();
}

// Rows that are not a table, or too wide for the screen, are shown as they are written.
void Markdown::show_table() {
  if (table_.empty()) return;
  std::vector<std::string> rows;
  rows.swap(table_);
  const Line line = line_;
  const bool is_table = rows.size() > 1 && is_delimiter_row(rows[1]);
  const auto aligned = is_table ? aligned_table(rows, columns_) : std::nullopt;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const bool has_break = rows[row].ends_with('\n');
    if (has_break) rows[row].pop_back();
    line_ = Line::text;
    is_title_ = is_table && row == 0;
    out_.keep_line();
    restyle();
    for (const char byte : aligned ? (*aligned)[row] : rows[row]) take_inline(byte);
    while (!link_.empty()) release_link();
    end_run('\n');
    code_.clear();
    bold_ = italic_ = is_title_ = false;
    before_ = ' ';
    restyle();
    if (has_break) out_.push("\n");
  }
  line_ = line;
}

void Markdown::restyle() {
  if (styled_) style(theme_.plain);
  styled_ = false;
  const auto add = [this](bool wanted, std::string_view sequence) {
    if (!wanted || sequence.empty()) return;
    style(sequence);
    styled_ = true;
  };
  add(line_ == Line::fence, theme_.fence);
  add(line_ == Line::heading, theme_.heading);
  add((line_ == Line::code && !highlighter_) || !code_.empty(), theme_.code);
  add(bold_ || is_title_, theme_.bold);
  add(italic_, theme_.italic);
}

void Markdown::style(std::string_view sequence) {
  if (!sequence.empty()) out_.style(sequence);
}

void Markdown::show(std::string_view text) {
  out_.push(text);
  if (!text.empty()) before_ = text.back();
}

}  // namespace inferno::terminal
