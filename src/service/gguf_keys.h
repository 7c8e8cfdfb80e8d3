// The GGUF keys for everything besides the weights: vocabulary, chat templates and sampling settings, as
// ModelFiles reads them.
#pragma once

#include <filesystem>

#include "checkpoint/gguf/writer.h"
#include "text/tokenizer_gguf.h"

namespace inferno {

GgufKeys vocabulary_keys(const GgufVocabulary& vocabulary);

// The chat templates of a model directory; empty if it has none.
GgufKeys template_keys(const std::filesystem::path& model);

// The sampling settings that the model's authors recommend, and token ids that only generation_config.json or
// config.json have.
GgufKeys generation_keys(const std::filesystem::path& model, const GgufVocabulary& vocabulary);

}  // namespace inferno
