// Which conversation protocol a model speaks. Native Harmony only for the vocabulary it was made for
// (o200k_harmony); every other model, also a small one of gpt-oss's architecture, is sent what its own
// template writes. Replies are read by what vocabulary and template show: a vocabulary with Harmony's control
// tokens, whatever their ids, and a template that writes them mean that replies come in channels.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "chat/chat_format.h"
#include "chat/jinja/template.h"
#include "chat/template_source.h"

namespace inferno {

struct ChatOptions {
  std::function<std::chrono::local_seconds()> clock = jinja::local_now;  // the date that prompts name
  // Off: what a user typed is ordinary text, even when it spells a control token. On: it may become one, as
  // with Hugging Face's apply_chat_template.
  bool user_text_may_hold_control_tokens = false;
};

struct ModelTemplates {
  std::optional<TemplateSource> usual;
  std::optional<TemplateSource> with_tools;        // for conversations with tools, where the model has two
  std::map<std::string, std::string> model_texts;  // bos_token, eos_token, … for a default template
};

// Whether this is the vocabulary of gpt-oss: Harmony's control tokens under their well-known ids.
bool is_o200k_harmony(const Tokenizer& tokenizer);

// The tokenizer must outlive the result. nullptr when the model has no chat format: no o200k_harmony
// vocabulary, no template, and control tokens of no family with a default template.
std::unique_ptr<ChatFormat> make_chat_format(const Tokenizer& tokenizer, const ModelTemplates& templates,
                                             const ChatOptions& options = {});

}  // namespace inferno
