// Small pieces of printing that several builtins share.
#pragma once

#include <string>
#include <string_view>

#include "chat/jinja/text.h"

namespace inferno::jinja {

// Rewrites a text character by character, each result keeping the origin of its character:
// change(std::string& out, char32_t value, std::string_view as_written).
template <class Change>
Text map_characters(Meter& meter, const Text& text, Change&& change);

}  // namespace inferno::jinja

#include "chat/jinja/unicode.h"

namespace inferno::jinja {

template <class Change>
Text map_characters(Meter& meter, const Text& text, Change&& change) {
  constexpr std::size_t at_once =
      16 << 10;  // a character may become a thousand: what is not yet counted stays small
  Text result;
  meter.touch(text.size() * 8);
  text.for_each_stretch([&](std::string_view stretch, Origin origin) {
    std::string changed;
    for (std::size_t at = 0; at < stretch.size();) {
      const CodePoint point = code_point_at(stretch, at);
      change(changed, point.value, stretch.substr(at, point.bytes));
      at += point.bytes;
      if (changed.size() < at_once) continue;
      result.append(meter, changed, origin);
      changed.clear();
    }
    result.append(meter, changed, origin);
  });
  return result;
}

}  // namespace inferno::jinja
