// Keeps the tokens of earlier turns. Every turn renders the whole conversation again, and the same text can
// be tokenized in more than one way; at the first token that differs from what the model generated, the
// prefix cache would stop matching.
#pragma once

#include <span>
#include <vector>

#include "text/tokenizer.h"

namespace inferno {

// `prompt`, whose first tokens are replaced by those of `before` as long as both stand for the same bytes. A
// control token matches only itself, so that text which spells one remains text.
std::vector<TokenId> with_kept_tokens(const Tokenizer& tokenizer, const std::vector<TokenId>& prompt,
                                      std::span<const TokenId> before);

}  // namespace inferno
