// The sampling parameters that a model's authors recommend, and the tokens that end its text.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "base/token.h"
#include "checkpoint/config.h"

namespace inferno {

struct GenerationConfig {
  std::vector<TokenId> eos;  // any of these tokens ends the text; may be empty
  std::optional<TokenId> bos, pad;
  std::optional<float> temperature;  // 0 means greedy
  std::optional<int> top_k;          // 0 means off
  std::optional<float> top_p;        // from 0 to 1
  std::optional<float> repetition_penalty;
};

// From generation_config.json, or from config.json, which has the token ids of older models. Error{corrupt}
// naming the key if a value has the wrong type or is outside its range.
GenerationConfig generation_config(const Config& values);

// Reads generation_config.json of a model directory, and missing token ids from config.json. Neither file is
// required.
GenerationConfig read_generation_config(const std::filesystem::path& directory);

}  // namespace inferno
