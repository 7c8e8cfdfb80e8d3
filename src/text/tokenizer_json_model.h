// The vocabulary of a tokenizer.json: model, added tokens, and who has which id.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/added_tokens.h"
#include "text/json_value.h"
#include "text/special_tokens.h"
#include "text/vocabulary.h"

namespace inferno {

struct JsonModel {
  std::unique_ptr<SubwordModel> model;
  TokenTexts texts;  // as written in the file
  std::vector<AddedToken> added;
};

// Tokens that only the settings know become part of the vocabulary, as transformers does. Error{corrupt} when
// ids are negative, beyond reason or taken twice, or a merge names an unknown piece.
JsonModel read_model(const JsonValue& root, const SpecialTokenSettings& settings, bool byte_level);

}  // namespace inferno
