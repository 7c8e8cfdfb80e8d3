// A tokenizer assembled from its parts. The loaders of tokenizer.json and of GGUF vocabularies differ only in
// where the parts come from.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/added_tokens.h"
#include "text/models/vocabulary.h"
#include "text/normalizer.h"
#include "text/pretokenizer.h"
#include "text/tokenizer.h"

namespace inferno {

namespace decode {

struct ReadBytes {};     // from GPT-2's byte alphabet; a token outside it stays as it is
struct ByteFallback {};  // <0x41> is a byte
struct Replace {
  std::string pattern;
  std::string content;
};
struct Strip {
  std::string content;  // one character
  int start = 0;
  int stop = 0;
};
struct Prepend {
  std::string text;
};

}  // namespace decode

using DecoderStep =
    std::variant<decode::ReadBytes, decode::ByteFallback, decode::Replace, decode::Strip, decode::Prepend>;

// Turns a token into the bytes it adds to a text. Runs once per token while loading.
struct TokenDecoder {
  std::vector<DecoderStep> steps;
  DecodeStyle style;
  std::string bytes_of(std::string_view token) const;
};

struct TokenizerParts {
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::unique_ptr<SubwordModel> model;
  std::vector<AddedToken> added;
  TokenTexts bytes;  // by id, as TokenDecoder writes them
  DecodeStyle style;
  std::vector<TokenId> prefix;  // added before an encoded text by add_special
  std::vector<TokenId> suffix;
  std::optional<TokenId> bos;
  std::vector<TokenId> end_tokens;
};

std::unique_ptr<Tokenizer> assemble(TokenizerParts parts);

}  // namespace inferno
