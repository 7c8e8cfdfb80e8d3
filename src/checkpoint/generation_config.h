// How the makers of a model want it sampled and which tokens end its text.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "base/token.h"
#include "checkpoint/config.h"

namespace inferno {

struct GenerationConfig {
  std::vector<TokenId> eos;  // any of them ends the text; empty when the file names none
  std::optional<TokenId> bos, pad;
  std::optional<float> temperature;  // 0 means greedy
  std::optional<int> top_k;          // 0 means off
  std::optional<float> top_p;        // from 0 to 1
  std::optional<float> repetition_penalty;
};

// From generation_config.json's values, or from config.json's, which older models use for the token ids.
// Error{corrupt} naming the key when a value is of the wrong kind or outside its range.
GenerationConfig generation_config(const Config& values);

// A model directory's generation_config.json; what it does not say about tokens comes from config.json.
// Neither file is required.
GenerationConfig read_generation_config(const std::filesystem::path& directory);

}  // namespace inferno
