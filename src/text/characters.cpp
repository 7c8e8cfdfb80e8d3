#include "text/characters.h"

#include <utf8proc.h>

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
  const bool circled_letter = code >= 0x24B6 && code <= 0x24E9;  // symbols that are alphabetic all the same
  return (found >= UTF8PROC_CATEGORY_LU && found <= UTF8PROC_CATEGORY_NL) || found == UTF8PROC_CATEGORY_PC ||
         circled_letter;
}

bool is_nonspacing_mark(char32_t code) {
  return category(code) == UTF8PROC_CATEGORY_MN;
}

}  // namespace inferno
