#include "text/normalizer.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <new>

#include "base/error.h"
#include "base/utf8.h"
#include "text/byte_alphabet.h"
#include "text/characters.h"

namespace inferno {
namespace {

// Unicode normal forms use utf8proc's tables but not its sorting of combining marks, which is quadratic for a
// text that consists of marks. Here marks are sorted in n log n, and text that cannot change is skipped.

// No character below U+00A0 changes in any form; below U+0300 none changes in NFC.
constexpr char32_t first_changing(UnicodeForm form) {
  return form == UnicodeForm::nfc ? 0x300 : 0xA0;
}

int decomposition_options(UnicodeForm form) {
  const bool compatible = form == UnicodeForm::nfkc || form == UnicodeForm::nfkd;
  return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
}

auto combining_class(utf8proc_int32_t code) {
  return utf8proc_get_property(code)->combining_class;
}

void decompose(std::vector<utf8proc_int32_t>& codes, char32_t code, int options) {
  constexpr utf8proc_ssize_t max_codes = 32;  // U+FDFA becomes 18 characters
  const std::size_t before = codes.size();
  codes.resize(before + max_codes);
  int boundary = 0;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), codes.data() + before,
                                             max_codes, static_cast<utf8proc_option_t>(options), &boundary);
  expects(count >= 0 && count <= max_codes, "a character decomposes into at most 32");
  codes.resize(before + static_cast<std::size_t>(count));
}

void sort_marks(std::vector<utf8proc_int32_t>& codes) {
  for (auto at = codes.begin(); at != codes.end();) {
    if (combining_class(*at) == 0) {
      ++at;
      continue;
    }
    const auto end = std::find_if(at, codes.end(), [](auto code) { return combining_class(code) == 0; });
    std::stable_sort(at, end, [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    at = end;
  }
}

void append_form(std::string& out, std::string_view text, UnicodeForm form) {
  std::vector<utf8proc_int32_t> codes;
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Character character = utf8::decode(text, at);
    decompose(codes, character.code, decomposition_options(form));
    at += static_cast<std::size_t>(character.length);
  }
  sort_marks(codes);
  if (form == UnicodeForm::nfc || form == UnicodeForm::nfkc) {
    const auto count =
        utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()),
                                 static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    expects(count >= 0, "composition does not fail");
    codes.resize(static_cast<std::size_t>(count));
  }
  for (const auto code : codes) utf8::append(out, static_cast<char32_t>(code));
}

bool is_ascii(char c) {
  return static_cast<unsigned char>(c) < 0x80;
}

}  // namespace

std::string to_form(std::string_view text, UnicodeForm form) {
  std::string out;
  out.reserve(text.size());
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (is_ascii(text[at])) {
      ++at;
      continue;
    }
    // A run without ASCII, and the character before it, with which its first mark may compose.
    std::size_t end = at;
    bool changes = false;
    while (end < text.size() && !is_ascii(text[end])) {
      const utf8::Character character = utf8::decode(text, end);
      changes = changes || character.code >= first_changing(form);
      end += static_cast<std::size_t>(character.length);
    }
    if (changes) {
      const std::size_t begin = at > done ? at - 1 : at;
      out += text.substr(done, begin - done);
      append_form(out, text.substr(begin, end - begin), form);
      done = end;
    }
    at = end;
  }
  out += text.substr(done);
  return out;
}

namespace {

// A replacement may lengthen a text, but a few bytes must not become gigabytes.
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
    const std::size_t start = utf8::previous(text, end);
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
        max_bytes_(text_.size() * max_growth + always_allowed) {}

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
    if (out.size() + more.size() > max_bytes_) {
      fail(ErrorKind::unsupported,
           fmt::format("{}: a replacement makes the text more than {} times longer", where_, max_growth));
    }
    out += more;
  }

  std::string text_;
  RegexScratch& scratch_;
  std::string_view where_;
  std::size_t max_bytes_;
};

struct MaxShrinkage {
  // Four bytes of a mathematical letter become one, nine bytes of a Hangul syllable three.
  std::size_t operator()(const normalize::ToForm&) const { return 4; }
  std::size_t operator()(const normalize::Prepend&) const { return 1; }
  std::size_t operator()(const normalize::ReplaceText& step) const {
    if (step.content.empty()) return 0;
    return (step.pattern.size() + step.content.size() - 1) / step.content.size();
  }
  std::size_t operator()(const normalize::ReplacePattern&) const { return 0; }
  std::size_t operator()(const normalize::Lowercase&) const { return 3; }  // the Kelvin sign becomes a k
  std::size_t operator()(const normalize::StripAccents&) const { return 0; }
  std::size_t operator()(const normalize::Strip&) const { return 0; }
  std::size_t operator()(const normalize::WriteBytes&) const { return 1; }
};

}  // namespace

std::size_t Normalizer::max_shrinkage() const {
  std::size_t factor = 1;
  for (const NormalizerStep& step : steps_) factor *= std::visit(MaxShrinkage{}, step);
  return factor;
}

std::string Normalizer::apply(std::string_view text, RegexScratch& scratch) const {
  Apply apply(std::string(text), scratch, where_);
  for (const NormalizerStep& step : steps_) std::visit(apply, step);
  return apply.take();
}

}  // namespace inferno
