// Text out of a file that nobody vouches for. Messages may repeat it only through quote(), and a name may
// become a path only after is_plain_file_name().
#pragma once

#include <string>
#include <string_view>

namespace inferno {

bool is_utf8(std::string_view text);

// In double quotes, with control characters and broken UTF-8 escaped and long text cut: safe to print.
std::string quote(std::string_view text);

// A name that stays inside the directory it is looked up in: no separator, no "..", no control character.
bool is_plain_file_name(std::string_view name);

}  // namespace inferno
