// Templates for chat models whose files contain none. The template is chosen by the control tokens in the
// vocabulary, because a model trained on a format has its tokens. Guessing from the name of the architecture
// would give a base model a format it has never seen, and every answer would silently be worse.
//
// | family    | chosen when the vocabulary has                        | models                          |
// |-----------|-------------------------------------------------------|---------------------------------|
// | llama-3   | <|start_header_id|>, <|end_header_id|>, <|eot_id|>    | Llama 3, 3.1, 3.2, 3.3          |
// | granite   | <|start_of_role|>, <|end_of_role|>                    | Granite 3 and later             |
// | phi-3     | <|user|>, <|assistant|>, <|end|>                      | Phi-3, Phi-3.5                  |
// | chatml    | <|im_start|>, <|im_end|>                              | Qwen 1.5 to 3, Yi, Hermes       |
// | mistral   | [INST], [/INST]                                       | Mistral 0.3 and later           |
//
// Other models have no chat format: they complete text, and the caller says so.
#pragma once

#include <functional>
#include <span>
#include <string_view>

namespace inferno {

struct DefaultTemplate {
  std::string_view family;
  std::span<const std::string_view> control_tokens;  // all of them must be in the vocabulary
  std::string_view source;                           // Jinja
};

std::span<const DefaultTemplate> default_templates();

// nullptr if no template fits. `has_token` tells whether the vocabulary has a control token of this text.
const DefaultTemplate* choose_default_template(const std::function<bool(std::string_view)>& has_token);

}  // namespace inferno
