// Reads the components of a tokenizer.json into plain data. An unknown component is Error{unsupported} with
// its name; nothing is skipped silently.
#pragma once

#include <string>
#include <vector>

#include "text/json/json_value.h"
#include "text/normalizer.h"
#include "text/pipeline.h"
#include "text/pretokenizer.h"

namespace inferno {

struct SplitSteps {
  std::vector<PreTokenizerStep> steps;
  bool byte_level = false;        // the vocabulary is written in GPT-2's byte alphabet
  bool in_byte_alphabet = false;  // and so is the text after the last step
};

std::vector<NormalizerStep> read_normalizer(const JsonValue& json);
SplitSteps read_pre_tokenizer(const JsonValue& json);
TokenDecoder read_decoder(const JsonValue& json);

struct SurroundingTokens {
  std::vector<TokenId> before;
  std::vector<TokenId> after;
  bool has_template = false;  // even if the template adds no tokens
};
SurroundingTokens read_post_processor(const JsonValue& json);

}  // namespace inferno
