// Unicode normal forms on utf8proc's tables. utf8proc sorts combining marks by swapping neighbours, which a
// text of nothing but marks makes quadratic; here they are sorted properly, and plain stretches are skipped.
#include <utf8proc.h>

#include <algorithm>
#include <new>

#include "base/error.h"
#include "base/utf8.h"
#include "text/normalizer.h"

namespace inferno {
namespace {

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
  constexpr utf8proc_ssize_t most = 32;  // U+FDFA becomes 18 characters
  const std::size_t before = codes.size();
  codes.resize(before + most);
  int boundary = 0;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), codes.data() + before, most,
                                             static_cast<utf8proc_option_t>(options), &boundary);
  expects(count >= 0 && count <= most, "a character decomposes into at most 32");
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
    // A stretch without ASCII, and the one character before it, onto which its first mark may compose.
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

}  // namespace inferno
