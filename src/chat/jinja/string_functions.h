// What Python's str methods do, on texts that know their origin. Filters and methods share them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "chat/jinja/text.h"
#include "chat/jinja/value.h"

namespace inferno::jinja {

enum class Side : std::uint8_t { left, right, both };
enum class Case : std::uint8_t { upper, lower, capital, title, swapped, folded };

// Without `characters`, whitespace goes.
Text strip(Meter& meter, const Text& text, const Text* characters, Side side);

// Every occurrence when count is negative.
Text replace_text(Meter& meter, const Text& text, const Text& old_text, const Text& new_text,
                  std::int64_t count);
Text change_case(Meter& meter, const Text& text, Case wanted);

// Every split when `limit` is negative. A null separator means runs of whitespace.
std::vector<Text> split(Meter& meter, const Text& text, const Text* separator, std::int64_t limit);
std::vector<Text> split_from_right(Meter& meter, const Text& text, const Text* separator, std::int64_t limit);
std::vector<Text> split_lines(Meter& meter, const Text& text, bool keep_ends);

Text expand_tabs(Meter& meter, const Text& text, std::int64_t size);

// To `width` code points; the padding is the template's.
Text pad(Meter& meter, const Text& text, std::int64_t left, std::int64_t right, std::string_view fill = " ");

}  // namespace inferno::jinja
