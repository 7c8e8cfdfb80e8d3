// A tokenizer.json as the vocabulary of a GGUF file: tokenizer_gguf.cpp backwards.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "text/tokenizer.h"
#include "text/tokenizer_gguf.h"

namespace inferno {

struct ExportedVocabulary {
  GgufVocabulary vocabulary;
  std::vector<std::string> notes;  // what such a file cannot say and rarely matters, one sentence each
};

// `size` is the number of rows of the model's embedding; ids without a token are filled up to it. The result
// is checked: a tokenizer made from it encodes every token, and texts made of many of them, as the original
// does. Errors as load_tokenizer; Error{unsupported} when a GGUF file cannot say how this tokenizer works,
// Error{corrupt} when it has more tokens than the model.
ExportedVocabulary export_vocabulary(const std::filesystem::path& model, int size);

// A text without control tokens that the two encode differently, or a token whose text differs; nullopt when
// none was found. Tries every token's own text and some thousand texts of several tokens each, the same every
// time.
std::optional<std::string> first_difference(const Tokenizer& original, const Tokenizer& copy);

// The same for texts with control tokens inside, as templates write them: one text for each such token.
std::optional<std::string> first_control_difference(const Tokenizer& original, const Tokenizer& copy);

}  // namespace inferno
