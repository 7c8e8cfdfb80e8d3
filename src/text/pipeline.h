// A tokenizer put together from its parts. The loaders of tokenizer.json and of GGUF vocabularies differ only
// in where they get the parts from.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "text/added_tokens.h"
#include "text/normalizer.h"
#include "text/pretokenizer.h"
#include "text/subword_model.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace inferno {

struct TokenizerParts {
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::unique_ptr<SubwordModel> model;
  std::vector<AddedToken> added;
  TokenTexts bytes;  // by id, as the decoder writes them
  DecodeStyle style;
  std::vector<TokenId> prefix;  // put before an encoded text by add_special
  std::vector<TokenId> suffix;
  std::optional<TokenId> bos;
  std::vector<TokenId> end_tokens;
};

std::unique_ptr<Tokenizer> assemble(TokenizerParts parts);

}  // namespace inferno
