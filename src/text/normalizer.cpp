#include "text/normalizer.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"
#include "text/byte_alphabet.h"
#include "text/characters.h"

#include <utf8proc.h>

namespace inferno {
namespace {

// A replacement may make a text longer, but a few bytes must not become gigabytes.
constexpr std::size_t max_growth = 16;
constexpr std::size_t always_allowed = 1 << 16;

// Calls `change(out, code)` for every character.
template <typename Change>
std::string by_character(std::string_view text, Change change) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Character character = utf8::decode(text, at);
    change(out, character.code);
    at += static_cast<std::size_t>(character.length);
  }
  return out;
}

std::string_view strip(std::string_view text, const normalize::Strip& sides) {
  std::size_t begin = 0;
  while (sides.left && begin < text.size()) {
    const utf8::Character character = utf8::decode(text, begin);
    if (!is_white_space(character.code)) break;
    begin += static_cast<std::size_t>(character.length);
  }
  std::size_t end = text.size();
  while (sides.right && end > begin) {
    std::size_t start = end - 1;
    while (start > begin && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
    if (!is_white_space(utf8::decode(text, start).code)) break;
    end = start;
  }
  return text.substr(begin, end - begin);
}

void lower(std::string& out, char32_t code) {
  if (code == 0x130) {  // the only character whose lower case is two characters
    out += "i\xCC\x87";
  } else {
    utf8::append(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
  }
}

class Apply {
 public:
  Apply(std::string text, RegexScratch& scratch, std::string_view where)
      : text_(std::move(text)),
        scratch_(scratch),
        where_(where),
        most_(text_.size() * max_growth + always_allowed) {}

  void operator()(const normalize::ToForm& step) { text_ = to_form(text_, step.form); }
  void operator()(const normalize::Prepend& step) {
    if (!text_.empty()) text_.insert(0, step.prefix);
  }
  void operator()(const normalize::ReplaceText& step) {
    std::string out;
    std::size_t from = 0;
    for (std::size_t at = text_.find(step.pattern); at != std::string::npos;
         at = text_.find(step.pattern, from)) {
      add(out, std::string_view(text_).substr(from, at - from));
      add(out, step.content);
      from = at + step.pattern.size();
    }
    add(out, std::string_view(text_).substr(from));
    text_ = std::move(out);
  }
  void operator()(const normalize::ReplacePattern& step) {
    std::string out;
    std::size_t from = 0;
    RegexScan scan(*step.pattern, text_, scratch_);
    while (const auto match = scan.next()) {
      add(out, std::string_view(text_).substr(from, match->begin - from));
      add(out, step.content);
      from = match->end;
    }
    add(out, std::string_view(text_).substr(from));
    text_ = std::move(out);
  }
  void operator()(const normalize::Lowercase&) { text_ = by_character(text_, lower); }
  void operator()(const normalize::StripAccents&) {
    text_ = by_character(text_, [](std::string& out, char32_t code) {
      if (!is_nonspacing_mark(code)) utf8::append(out, code);
    });
  }
  void operator()(const normalize::Strip& step) { text_ = std::string(strip(text_, step)); }
  void operator()(const normalize::WriteBytes&) { text_ = byte_alphabet::write(text_); }

  std::string take() { return std::move(text_); }

 private:
  void add(std::string& out, std::string_view more) const {
    if (out.size() + more.size() > most_) {
      fail(ErrorKind::unsupported,
           fmt::format("{}: a replacement makes the text more than {} times longer", where_, max_growth));
    }
    out += more;
  }

  std::string text_;
  RegexScratch& scratch_;
  std::string_view where_;
  std::size_t most_;
};

}  // namespace

std::string Normalizer::apply(std::string_view text, RegexScratch& scratch) const {
  Apply apply(std::string(text), scratch, where_);
  for (const NormalizerStep& step : steps_) std::visit(apply, step);
  return apply.take();
}

}  // namespace inferno
