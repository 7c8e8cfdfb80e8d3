#include "text/shown.h"

#include <fmt/format.h>

#include "text/utf8.h"

namespace inferno {

std::string shown(std::string_view text, std::size_t most) {
  std::string out = "`";
  std::size_t at = 0;
  while (at < text.size() && at < most) {
    const utf8::Character character = utf8::decode(text, at);
    const std::size_t length = character.length == 0 ? 1 : static_cast<std::size_t>(character.length);
    const bool control = character.code < 0x20 || (character.code >= 0x7F && character.code < 0xA0);
    if (character.length == 0 || control) {
      for (const char c : text.substr(at, length))
        out += fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
    } else {
      out += text.substr(at, length);
    }
    at += length;
  }
  out += at < text.size() ? "…`" : "`";
  return out;
}

}  // namespace inferno
