// The vocabulary part of a GGUF header as plain data, so that this layer needs no GGUF reader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/token.h"

namespace inferno {

// tokenizer.ggml.token_type
enum class GgufTokenType : std::int32_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

struct GgufVocabulary {
  std::string file = {};   // for error messages
  std::string model = {};  // tokenizer.ggml.model: gpt2, llama, t5
  std::string pre;         // tokenizer.ggml.pre: which split pattern = {}; empty when absent
  std::vector<std::string> tokens = {};
  std::vector<float> scores = {};              // empty, or one per token
  std::vector<std::int32_t> token_types = {};  // empty, or one per token
  std::vector<std::string> merges = {};        // "left right", best first
  std::optional<TokenId> bos = {};
  std::optional<TokenId> eos = {};
  std::optional<TokenId> unknown = {};
  std::vector<TokenId> other_end_tokens = {};  // eot, eom
  std::optional<bool> add_bos = {};
  std::optional<bool> add_eos = {};
  std::optional<bool> add_space_prefix = {};
};

}  // namespace inferno
