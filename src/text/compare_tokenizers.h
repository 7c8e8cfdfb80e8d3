// Whether two tokenizers do the same, as far as texts can tell.
#pragma once

#include <optional>
#include <string>

#include "text/tokenizer.h"

namespace inferno {

// A text that the two encode differently, as users write it or as templates do, or a token whose text
// differs; nullopt when none was found. Tries every token's own text and some thousand texts of several
// tokens each, the same ones every time.
std::optional<std::string> first_difference(const Tokenizer& original, const Tokenizer& copy);

}  // namespace inferno
