// The GGUF keys for everything besides the weights: vocabulary, chat templates and sampling settings, which
// ModelFiles reads back.
#pragma once

#include "chat/make_chat_format.h"
#include "checkpoint/generation_config.h"
#include "checkpoint/gguf/writer.h"
#include "text/gguf/tokenizer_gguf.h"

namespace inferno {

GgufKeys vocabulary_keys(const GgufVocabulary& vocabulary);

// Empty if the model has no templates.
GgufKeys template_keys(const ModelTemplates& templates);

// The sampling settings that the model's authors recommend, and token ids that the vocabulary does not have.
GgufKeys generation_keys(const GenerationConfig& config, const GgufVocabulary& vocabulary);

}  // namespace inferno
