// Reads a model's chat template and the special texts that it may print.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "chat/jinja/template.h"

namespace inferno {

struct TemplateSource {
  std::string name;  // file or key of the template, for messages
  std::string source;
  std::map<std::string, std::string> model_texts;  // bos_token, eos_token, …; see jinja::RenderOptions
};

// From a Hugging Face directory: chat_template.jinja, else "chat_template" in tokenizer_config.json or
// chat_template.json. If there are several, "tool_use" is for conversations with tools and "default" for all
// others. nullopt if the directory has none; Error{corrupt} for a malformed file, Error{unsupported} for one
// that is too large.
std::optional<TemplateSource> read_template(const std::filesystem::path& model, bool with_tools);

// The texts of bos_token, eos_token and so on in tokenizer_config.json or special_tokens_map.json.
std::map<std::string, std::string> read_model_texts(const std::filesystem::path& model);

jinja::Template parse_template(const TemplateSource& source);

}  // namespace inferno
