#include "service/loading/gguf_keys.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace inferno {
namespace {

void add_id(GgufKeys& keys, std::string_view name, std::optional<TokenId> id) {
  if (id) keys.emplace_back(name, static_cast<std::uint32_t>(*id));
}

void add_flag(GgufKeys& keys, std::string_view name, std::optional<bool> flag) {
  if (flag) keys.emplace_back(name, *flag);
}

}  // namespace

GgufKeys vocabulary_keys(const GgufVocabulary& vocabulary) {
  GgufKeys keys = {{"tokenizer.ggml.model", vocabulary.model},
                   {"tokenizer.ggml.pre", vocabulary.pre},
                   {"tokenizer.ggml.tokens", vocabulary.tokens}};
  if (!vocabulary.scores.empty()) keys.emplace_back("tokenizer.ggml.scores", vocabulary.scores);
  keys.emplace_back("tokenizer.ggml.token_type", vocabulary.token_types);
  if (vocabulary.model == "gpt2") keys.emplace_back("tokenizer.ggml.merges", vocabulary.merges);
  add_id(keys, "tokenizer.ggml.bos_token_id", vocabulary.bos);
  add_id(keys, "tokenizer.ggml.eos_token_id", vocabulary.eos);
  add_id(keys, "tokenizer.ggml.unknown_token_id", vocabulary.unknown);
  constexpr std::array others = {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};
  for (std::size_t i = 0; i < std::min(others.size(), vocabulary.other_end_tokens.size()); ++i) {
    add_id(keys, others[i], vocabulary.other_end_tokens[i]);
  }
  add_flag(keys, "tokenizer.ggml.add_bos_token", vocabulary.add_bos);
  add_flag(keys, "tokenizer.ggml.add_eos_token", vocabulary.add_eos);
  add_flag(keys, "tokenizer.ggml.add_space_prefix", vocabulary.add_space_prefix);
  return keys;
}

GgufKeys template_keys(const ModelTemplates& templates) {
  GgufKeys keys;
  if (templates.usual) keys.emplace_back("tokenizer.chat_template", templates.usual->source);
  if (templates.with_tools) {
    keys.emplace_back("tokenizer.chat_templates", std::vector<std::string>{"tool_use"});
    keys.emplace_back("tokenizer.chat_template.tool_use", templates.with_tools->source);
  }
  return keys;
}

GgufKeys generation_keys(const GenerationConfig& config, const GgufVocabulary& vocabulary) {
  GgufKeys keys;
  const auto known = [&](std::optional<TokenId> id) {
    return id && static_cast<std::size_t>(*id) < vocabulary.tokens.size() ? id : std::nullopt;
  };
  if (!vocabulary.bos) add_id(keys, "tokenizer.ggml.bos_token_id", known(config.bos));
  add_id(keys, "tokenizer.ggml.padding_token_id", known(config.pad));
  if (config.temperature) keys.emplace_back("general.sampling.temp", *config.temperature);
  if (config.top_k) keys.emplace_back("general.sampling.top_k", std::int32_t{*config.top_k});
  if (config.top_p) keys.emplace_back("general.sampling.top_p", *config.top_p);
  if (config.repetition_penalty)
    keys.emplace_back("general.sampling.penalty_repeat", *config.repetition_penalty);
  return keys;
}

}  // namespace inferno
