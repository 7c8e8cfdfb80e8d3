// Chooses the conversation protocol of a model. The native Harmony renderer is used only for the vocabulary
// it was made for (o200k_harmony); every other model, even a small one of gpt-oss's architecture, gets
// prompts from its own template. Vocabulary and template decide how replies are parsed: if the vocabulary has
// Harmony's control tokens, under any ids, and the template writes them, replies have channels.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "chat/chat_format.h"
#include "chat/template_source.h"

namespace inferno {

struct ModelTemplates {
  std::optional<TemplateSource> usual;
  std::optional<TemplateSource> with_tools;        // for conversations with tools, if the model has two
  std::map<std::string, std::string> model_texts;  // bos_token, eos_token, … for a default template
};

// Whether this is the vocabulary of gpt-oss: Harmony's control tokens with their well-known ids.
bool is_o200k_harmony(const Tokenizer& tokenizer);

// The tokenizer must outlive the result. nullptr if the model has no chat format: its vocabulary is not
// o200k_harmony, it has no template, and no default template fits its control tokens.
std::unique_ptr<ChatFormat> make_chat_format(const Tokenizer& tokenizer, const ModelTemplates& templates,
                                             const ChatOptions& options = {});

// Whether a prompt shows the tools that a conversation offers.
bool shows_tools(const ChatFormat& format);

}  // namespace inferno
