// A conversation is rendered anew for each turn, and text can be cut into tokens in more than one way: what
// the model wrote one way may come back another, and nothing behind that place would be found in the cache.
#pragma once

#include <span>
#include <vector>

#include "text/tokenizer.h"

namespace inferno {

// The same prompt, which begins with the tokens of `before` as far as both stand for the same bytes. Control
// tokens count only where both have them, so that text which spells one stays text.
std::vector<TokenId> with_kept_tokens(const Tokenizer& tokenizer, const std::vector<TokenId>& prompt,
                                      std::span<const TokenId> before);

}  // namespace inferno
