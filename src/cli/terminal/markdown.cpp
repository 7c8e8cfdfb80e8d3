#include "cli/terminal/markdown.h"

#include <algorithm>
#include <cctype>

namespace inferno::terminal {
namespace {

constexpr std::size_t max_indent = 16, max_digits = 9;
constexpr std::string_view plain = "\x1b[0m", bold = "\x1b[1m", italic = "\x1b[3m", dim = "\x1b[2m",
                           cyan = "\x1b[36m";

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

std::string Markdown::push(std::string_view text) {
  for (const char byte : text) take(byte);
  std::string out;
  out.swap(out_);
  return out;
}

std::string Markdown::finish() {
  end_line();
  fence_.clear();
  std::string out;
  out.swap(out_);
  return out;
}

void Markdown::take(char byte) {
  if (byte == '\n') {
    end_line();
    out_ += '\n';
    return;
  }
  if (line_ == Line::text) {
    take_inline(byte);
  } else if (line_ != Line::undecided) {
    show({&byte, 1});
  } else {
    held_ += byte;
    const Line kind = kind_of_line();
    if (kind != Line::undecided) begin_line(kind);
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
    default: break;
  }
  const std::size_t digits = std::min(mark.find_first_not_of("0123456789"), mark.size());
  if (digits == 0 || digits > max_digits) return Line::text;
  return mark.size() < digits + 2 ? Line::undecided : Line::text;
}

void Markdown::begin_line(Line kind) {
  std::string beginning;
  beginning.swap(held_);
  line_ = kind;
  const std::string_view mark = without_indent(beginning);
  if (kind == Line::fence) fence_ = fence_.empty() ? std::string(mark.substr(0, run_length(mark))) : "";
  if (kind != Line::text) {
    restyle();
    show(beginning);
    return;
  }
  const std::size_t marked = list_mark(mark);
  if (marked > 0) {
    const std::size_t end = beginning.size() - mark.size() + marked;
    out_ += std::string(cyan) + beginning.substr(0, end) + std::string(plain);
    before_ = ' ';
    beginning.erase(0, end);
  }
  for (const char byte : beginning) take_inline(byte);
}

void Markdown::take_inline(char byte) {
  if (!held_.empty() && held_.front() != byte) end_run(byte);
  if (byte == '`' || byte == '*' || byte == '_') {
    held_ += byte;
  } else {
    show({&byte, 1});
  }
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
  end_run('\n');
  line_ = Line::undecided;
  code_.clear();
  bold_ = italic_ = false;
  before_ = ' ';
  restyle();
}

void Markdown::restyle() {
  if (styled_) out_ += plain;
  const std::size_t size = out_.size();
  if (line_ == Line::fence) out_ += dim;
  if (line_ == Line::heading) out_ += bold;
  if (line_ == Line::code || !code_.empty()) out_ += cyan;
  if (bold_) out_ += bold;
  if (italic_) out_ += italic;
  styled_ = out_.size() > size;
}

void Markdown::show(std::string_view text) {
  out_ += text;
  if (!text.empty()) before_ = text.back();
}

}  // namespace inferno::terminal
