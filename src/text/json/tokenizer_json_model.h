// The model of a tokenizer.json: vocabulary, merges or scores, added tokens, and the text of every id.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/added_tokens.h"
#include "text/json/json_value.h"
#include "text/json/special_tokens.h"
#include "text/models/vocabulary.h"

namespace inferno {

struct JsonModel {
  std::unique_ptr<SubwordModel> model;
  TokenTexts texts;  // as written in the file
  std::vector<AddedToken> added;
};

// Tokens that only the settings name are added to the vocabulary, as transformers does. Error{corrupt} if an
// id is negative, too large or used twice, or a merge names an unknown piece.
JsonModel read_model(const JsonValue& root, const SpecialTokenSettings& settings, bool byte_level);

}  // namespace inferno
