// A vocabulary and what belongs to it as the keys of a GGUF file: tokenizer_loading.cpp backwards.
#pragma once

#include <filesystem>

#include "checkpoint/gguf/writer.h"
#include "text/tokenizer_gguf.h"

namespace inferno {

GgufKeys vocabulary_keys(const GgufVocabulary& vocabulary);

// The chat templates of a model directory; empty when it has none.
GgufKeys template_keys(const std::filesystem::path& model);

// How the makers want it sampled, and the tokens that only generation_config.json or config.json name.
GgufKeys generation_keys(const std::filesystem::path& model, const GgufVocabulary& vocabulary);

}  // namespace inferno
