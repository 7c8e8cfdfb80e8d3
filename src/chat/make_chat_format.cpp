#include "chat/make_chat_format.h"

#include <fmt/format.h>

#include "chat/default_templates.h"
#include "chat/harmony.h"
#include "chat/template_format.h"

namespace inferno {

std::unique_ptr<ChatFormat> make_chat_format(const Tokenizer& tokenizer, const ModelTemplates& templates,
                                             const ChatOptions& options) {
  if (is_o200k_harmony(tokenizer)) return harmony::make_format(tokenizer, options);
  if (templates.usual) {
    return make_template_format(tokenizer, *templates.usual,
                                templates.with_tools ? &*templates.with_tools : nullptr, options);
  }
  if (templates.with_tools) return make_template_format(tokenizer, *templates.with_tools, nullptr, options);
  const DefaultTemplate* found =
      choose_default_template([&](std::string_view token) { return tokenizer.special(token).has_value(); });
  if (found == nullptr) return nullptr;
  const TemplateSource source{fmt::format("default template of {}", found->family),
                              std::string(found->source), templates.model_texts};
  return make_template_format(tokenizer, source, nullptr, options);
}

}  // namespace inferno
