// Where a model keeps its chat template, and the texts of its own that the template may print.
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
  std::string name;  // the file or key it came from, for messages
  std::string source;
  std::map<std::string, std::string> model_texts;  // bos_token, eos_token, …; see jinja::RenderOptions
};

// From a Hugging Face directory: chat_template.jinja, else "chat_template" in tokenizer_config.json or
// chat_template.json. Where there are several, "tool_use" serves conversations with tools, "default" all
// others. nullopt when the directory has none; Error{corrupt} when a file is not what it should be.
std::optional<TemplateSource> read_template(const std::filesystem::path& model, bool with_tools);

// The texts of bos_token, eos_token and their kin in tokenizer_config.json or special_tokens_map.json.
std::map<std::string, std::string> read_model_texts(const std::filesystem::path& model);

// Parses the source. A source beyond the size budget is refused here, before it is looked at.
jinja::Template parse_template(const TemplateSource& source);

}  // namespace inferno
