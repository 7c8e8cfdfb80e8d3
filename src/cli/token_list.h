// Token ids as people and scripts write them: "1,2,3", or separated by spaces and lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"

namespace inferno {

// Error{invalid_request} naming `origin` (an option or a file) and the word that is no token id.
std::vector<TokenId> parse_tokens(std::string_view text, const std::string& origin);

}  // namespace inferno
