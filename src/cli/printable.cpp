#include "cli/printable.h"

#include <fmt/format.h>

namespace inferno {

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto code = static_cast<unsigned char>(text[i]);
    const bool control = (code < 0x20 && text[i] != '\n' && text[i] != '\t') || code == 0x7F;
    // U+0080 to U+009F, the second set of controls, are C2 80 to C2 9F.
    const bool second_set = code == 0xC2 && i + 1 < text.size() && (static_cast<unsigned char>(text[i + 1]) & 0xE0) == 0x80;
    if (control) {
      out += fmt::format("\\x{:02x}", code);
    } else if (second_set) {
      out += fmt::format("\\u00{:02x}", static_cast<unsigned char>(text[++i]));
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace inferno
