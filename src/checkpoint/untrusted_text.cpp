#include "checkpoint/untrusted_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace inferno {
namespace {

constexpr std::size_t longest_quote = 96;

unsigned char byte_at(std::string_view text, std::size_t i) {
  return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
}

// Bytes of the well-formed UTF-8 sequence at the start of `text`, 0 when it is ill-formed. The bounds on the
// second byte exclude overlong forms, surrogates and everything above U+10FFFF.
std::size_t sequence_length(std::string_view text) {
  const unsigned char lead = byte_at(text, 0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  const unsigned char lowest = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char highest = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (byte_at(text, 1) < lowest || byte_at(text, 1) > highest) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte_at(text, i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

bool is_control(unsigned char byte) {
  return byte < 0x20 || byte == 0x7F;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string quote(std::string_view text) {
  std::string result = "\"";
  while (!text.empty() && result.size() < longest_quote) {
    const std::size_t length = sequence_length(text);
    const unsigned char lead = byte_at(text, 0);
    // C1 controls (U+0080 to U+009F) steer terminals just as the ASCII ones do.
    const bool steers = is_control(lead) || (lead == 0xC2 && length == 2 && byte_at(text, 1) < 0xA0);
    if (length == 0 || steers) {
      result += fmt::format("\\x{:02x}", lead);
      text.remove_prefix(1);
    } else {
      if (lead == '"' || lead == '\\') result += '\\';
      result += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  if (!text.empty()) result += "...";
  return result + "\"";
}

bool is_plain_file_name(std::string_view name) {
  if (name.empty() || name.size() > 255 || name == "." || name == ".." || !is_utf8(name)) return false;
  return std::none_of(name.begin(), name.end(), [](char c) {
    return c == '/' || c == '\\' || is_control(static_cast<unsigned char>(c));
  });
}

}  // namespace inferno
