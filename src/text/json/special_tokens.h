// Special tokens as named by the files next to tokenizer.json: tokenizer_config.json,
// special_tokens_map.json, generation_config.json and, without the latter, config.json.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "text/added_tokens.h"
#include "text/json/json_value.h"

namespace inferno {

struct SpecialTokenSettings {
  std::optional<std::string> bos;
  std::optional<std::string> eos;
  std::vector<std::string> special;  // texts of all special tokens, including bos and eos
  std::vector<AddedToken> added;     // added_tokens_decoder
  std::vector<TokenId> end_ids;      // generation_config.json; several end tokens are common
  bool add_bos = false;              // stated explicitly
  bool add_eos = false;
};

// Absent files leave their part empty. Error{corrupt} if one is not JSON or has a field of the wrong type.
SpecialTokenSettings read_settings(const std::filesystem::path& model_directory);

// One entry of added_tokens or added_tokens_decoder.
AddedToken read_added_token(const JsonValue& json, TokenId id);

// Reads a token id. Error{corrupt} if no vocabulary could have it.
TokenId read_token_id(const JsonValue& json);

}  // namespace inferno
