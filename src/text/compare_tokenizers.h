// Whether two tokenizers do the same, as far as texts can tell.
#pragma once

#include <optional>
#include <string>

#include "text/tokenizer.h"

namespace inferno {

// A text without control tokens that the two encode differently, or a token whose text differs; nullopt when
// none was found. Tries every token's own text and some thousand texts of several tokens each, the same every
// time.
std::optional<std::string> first_difference(const Tokenizer& original, const Tokenizer& copy);

// The same for texts with control tokens inside, as templates write them: one text for each such token.
std::optional<std::string> first_control_difference(const Tokenizer& original, const Tokenizer& copy);

}  // namespace inferno
