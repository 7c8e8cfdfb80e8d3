#include "chat/template_source.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "chat/json.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t max_json = std::uint64_t{64} << 20;

std::optional<Json> read_object(const fs::path& path) {
  if (!fs::exists(path)) return std::nullopt;
  Json json = parse_json(read_file(path, max_json), path.string(), LargeIntegers::round);
  if (!json.is_object()) {
    fail(ErrorKind::corrupt,
         fmt::format("{}: expected an object, found {}", path.string(), json.type_name()));
  }
  return json;
}

std::string expect_string(const Json& json, const std::string& name) {
  if (!json.is_string()) {
    fail(ErrorKind::corrupt, fmt::format("{}: expected a string, found {}", name, json.type_name()));
  }
  return json.get<std::string>();
}

// [{"name": "default", "template": "…"}, {"name": "tool_use", "template": "…"}]
std::optional<std::string> choose_named(const Json& list, bool with_tools, const std::string& name) {
  std::map<std::string, std::string> templates;
  for (const Json& entry : list) {
    if (!entry.is_object() || !entry.contains("name") || !entry.contains("template")) {
      fail(ErrorKind::corrupt, fmt::format("{}: expected objects with \"name\" and \"template\"", name));
    }
    templates[expect_string(entry.at("name"), name)] = expect_string(entry.at("template"), name);
  }
  for (const char* wanted : {with_tools ? "tool_use" : "default", "default"}) {
    if (const auto found = templates.find(wanted); found != templates.end()) return found->second;
  }
  return std::nullopt;
}

std::optional<TemplateSource> from_json(const fs::path& path, bool with_tools) {
  const auto json = read_object(path);
  if (!json || !json->contains("chat_template") || json->at("chat_template").is_null()) return std::nullopt;
  const std::string name = fmt::format("{}: chat_template", path.string());
  const Json& found = json->at("chat_template");
  if (!found.is_array()) return TemplateSource{name, expect_string(found, name), {}};
  auto chosen = choose_named(found, with_tools, name);
  if (!chosen) return std::nullopt;
  return TemplateSource{name, *std::move(chosen), {}};
}

std::optional<TemplateSource> from_files(const fs::path& model, bool with_tools) {
  const std::uint64_t max_bytes = jinja::Budgets{}.source_bytes;
  const fs::path with_tools_file = model / "additional_chat_templates" / "tool_use.jinja";
  if (with_tools && fs::exists(with_tools_file)) {
    return TemplateSource{with_tools_file.string(), read_file(with_tools_file, max_bytes), {}};
  }
  const fs::path file = model / "chat_template.jinja";
  if (fs::exists(file)) return TemplateSource{file.string(), read_file(file, max_bytes), {}};
  return std::nullopt;
}

// "bos_token": "<s>" or {"content": "<s>", …}
void collect_texts(std::map<std::string, std::string>& texts, const Json& object) {
  for (const auto& [key, value] : object.items()) {
    if (!key.ends_with("_token")) continue;
    if (value.is_string()) texts.try_emplace(key, value.get<std::string>());
    if (value.is_object() && value.contains("content") && value.at("content").is_string()) {
      texts.try_emplace(key, value.at("content").get<std::string>());
    }
  }
}

}  // namespace

std::optional<TemplateSource> read_template(const fs::path& model, bool with_tools) {
  auto source = from_files(model, with_tools);
  if (!source) source = from_json(model / "tokenizer_config.json", with_tools);
  if (!source) source = from_json(model / "chat_template.json", with_tools);
  if (source) source->model_texts = read_model_texts(model);
  return source;
}

std::map<std::string, std::string> read_model_texts(const fs::path& model) {
  std::map<std::string, std::string> texts;
  for (const char* file : {"tokenizer_config.json", "special_tokens_map.json"}) {
    if (const auto json = read_object(model / file)) collect_texts(texts, *json);
  }
  return texts;
}

jinja::Template parse_template(const TemplateSource& source) {
  return jinja::Template::parse(source.source, source.name);
}

}  // namespace inferno
