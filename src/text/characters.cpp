#include "text/characters.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/utf8.h"

namespace inferno {
namespace {

utf8proc_category_t category(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

}  // namespace

bool is_white_space(char32_t code) {
  return (code >= 0x09 && code <= 0x0D) || code == 0x20 || code == 0x85 || code == 0xA0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
         code == 0x205F || code == 0x3000;
}

bool is_numeric(char32_t code) {
  if (code < 0x80) return code >= '0' && code <= '9';
  const auto found = category(code);
  return found == UTF8PROC_CATEGORY_ND || found == UTF8PROC_CATEGORY_NL || found == UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t code) {
  if (code < 0x80) {
    return (code >= '!' && code <= '/') || (code >= ':' && code <= '@') || (code >= '[' && code <= '`') ||
           (code >= '{' && code <= '~');
  }
  const auto found = category(code);
  return found >= UTF8PROC_CATEGORY_PC && found <= UTF8PROC_CATEGORY_PO;
}

bool is_word_part(char32_t code) {
  const auto found = category(code);
  const bool circled_letter = code >= 0x24B6 && code <= 0x24E9;  // symbols with the property Alphabetic
  return (found >= UTF8PROC_CATEGORY_LU && found <= UTF8PROC_CATEGORY_NL) || found == UTF8PROC_CATEGORY_PC ||
         circled_letter;
}

bool is_nonspacing_mark(char32_t code) {
  return category(code) == UTF8PROC_CATEGORY_MN;
}

namespace {

utf8proc_int32_t code_of(char32_t code) {
  return static_cast<utf8proc_int32_t>(code);
}

}  // namespace

std::size_t next_character(std::string_view text, std::size_t at) {
  if (at >= text.size()) return text.size();
  utf8::Character last = utf8::decode(text, at);
  if (last.length == 0) return at + 1;
  std::size_t end = at + static_cast<std::size_t>(last.length);
  utf8proc_int32_t state = 0;
  while (end < text.size()) {
    const utf8::Character next = utf8::decode(text, end);
    if (next.length == 0) break;
    if (utf8proc_grapheme_break_stateful(code_of(last.code), code_of(next.code), &state)) break;
    end += static_cast<std::size_t>(next.length);
    last = next;
  }
  return end;
}

std::size_t previous_character(std::string_view text, std::size_t at) {
  // Clusters can only be found from a known boundary; a line break always is one.
  at = std::min(at, text.size());
  if (at == 0) return 0;
  const std::size_t line_break = at >= 2 ? text.rfind('\n', at - 2) : std::string_view::npos;
  std::size_t begin = line_break == std::string_view::npos ? 0 : line_break + 1;
  while (true) {
    const std::size_t end = next_character(text, begin);
    if (end >= at) return begin;
    begin = end;
  }
}

int character_columns(std::string_view character) {
  int width = 0;
  for (std::size_t at = 0; at < character.size();) {
    const utf8::Character code = utf8::decode(character, at);
    if (code.length == 0) return 1;
    width += std::max(0, utf8proc_charwidth(code_of(code.code)));
    at += static_cast<std::size_t>(code.length);
  }
  // Joined emoji and pairs of regional indicators are displayed as one wide character.
  return std::min(width, 2);
}

int columns(std::string_view text) {
  int width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = next_character(text, at);
    width += character_columns(text.substr(at, end - at));
    at = end;
  }
  return width;
}

}  // namespace inferno
