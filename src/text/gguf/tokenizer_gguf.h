// The vocabulary of a GGUF file as plain data, so that this layer needs no GGUF reader, and the tokenizer
// made from it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"
#include "text/tokenizer.h"

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
  std::string pre = {};    // tokenizer.ggml.pre: the name of the split pattern; empty if absent
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

// A tokenizer that gives the same results as the model's tokenizer.json. Error{corrupt}, Error{unsupported}.
std::unique_ptr<Tokenizer> make_tokenizer(GgufVocabulary vocabulary);

// tokenizer.ggml.pre names a way of splitting text. GGUF stores only the name; this is what it means.
struct GgufSplit {
  std::string_view name;
  std::span<const std::string_view> patterns;  // applied one after the other; matches are not split further
  bool ignore_merges = false;
  bool add_bos = false;  // default if the file has no add_bos_token
  bool nfc = false;      // the model's tokenizer.json normalizes to NFC
};

// Error{unsupported} with the known names if `name` is unknown. An empty name means "default".
const GgufSplit& find_split(std::string_view name, std::string_view file);

// The inverse: an entry with exactly these patterns, preferably with the same `ignore_merges`; null if there
// is none.
const GgufSplit* find_split_by_patterns(std::span<const std::string> patterns, bool nfc, bool ignore_merges);

}  // namespace inferno
