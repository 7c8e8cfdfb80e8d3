// Exports a tokenizer.json as the vocabulary of a GGUF file: the inverse of tokenizer_gguf.h.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "text/gguf/tokenizer_gguf.h"
#include "text/tokenizer.h"

namespace inferno {

struct ExportedVocabulary {
  GgufVocabulary vocabulary;
  std::vector<std::string> notes;  // what GGUF cannot express and rarely matters, one sentence each
};

// `size` is the number of rows of the model's embedding; unused ids are padded up to it. The result is
// verified: a tokenizer made from it encodes every token, and texts of many tokens, as the original does.
// Errors as load_tokenizer(); Error{unsupported} if GGUF cannot express this tokenizer, Error{corrupt} if it
// has more tokens than the model.
ExportedVocabulary export_vocabulary(const std::filesystem::path& model, int size);

// A text without control tokens that the two tokenizers encode differently, or a token whose text differs;
// nullopt if none was found. Tries the text of every token and a few thousand texts of several tokens, the
// same in every run.
std::optional<std::string> first_difference(const Tokenizer& original, const Tokenizer& copy);

// The same for texts that contain control tokens, as templates write them: one text per control token.
std::optional<std::string> first_control_difference(const Tokenizer& original, const Tokenizer& copy);

}  // namespace inferno
