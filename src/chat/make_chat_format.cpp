#include "chat/make_chat_format.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "chat/conversation.h"
#include "chat/default_templates.h"
#include "chat/harmony/format.h"
#include "chat/template_format.h"

namespace inferno {
namespace {

struct KnownToken {
  std::string_view text;
  TokenId id;
};
// Enough to tell o200k_harmony from other vocabularies with tokens of these names.
constexpr KnownToken known_tokens[] = {
    {"<|return|>", 200002}, {"<|constrain|>", 200003}, {"<|channel|>", 200005}, {"<|start|>", 200006},
    {"<|end|>", 200007},    {"<|message|>", 200008},   {"<|call|>", 200012}};

}  // namespace

bool is_o200k_harmony(const Tokenizer& tokenizer) {
  return std::all_of(std::begin(known_tokens), std::end(known_tokens),
                     [&](const KnownToken& known) { return tokenizer.special(known.text) == known.id; });
}

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

bool shows_tools(const ChatFormat& format) {
  Conversation conversation;
  conversation.messages = Json::array({{{"role", "user"}, {"content", "?"}}});
  try {
    const std::string without = format.render(conversation).text;
    conversation.tools =
        Json::array({{{"type", "function"},
                      {"function",
                       {{"name", "probe"},
                        {"description", "A tool"},
                        {"parameters", {{"type", "object"}, {"properties", Json::object()}}}}}}});
    return format.render(conversation).text != without;
  } catch (const Error&) {
    return true;  // then a conversation with tools gets the template's own error
  }
}

}  // namespace inferno
