// Finding text in text in linear time, whatever the pattern: templates and messages are not to be trusted
// with a quadratic search.
#pragma once

#include <cstddef>
#include <string_view>

namespace inferno::jinja {

// The first position >= from where `pattern` stands, or npos. An empty pattern stands everywhere.
std::size_t find_text(std::string_view text, std::string_view pattern, std::size_t from);

// The last position where `pattern` stands, or npos.
std::size_t find_last_text(std::string_view text, std::string_view pattern);

}  // namespace inferno::jinja
