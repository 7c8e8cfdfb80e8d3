#include "cli/template_loading.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "chat/default_templates.h"
#include "chat/json.h"
#include "checkpoint/gguf/reader.h"
#include "checkpoint/open_checkpoint.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t max_json = std::uint64_t{256} << 20;

// The texts of the added tokens in tokenizer_config.json and tokenizer.json.
std::set<std::string, std::less<>> added_tokens(const fs::path& model) {
  std::set<std::string, std::less<>> tokens;
  const auto collect = [&](const Json& token) {
    if (token.is_object() && token.contains("content") && token.at("content").is_string()) {
      tokens.insert(token.at("content").get<std::string>());
    }
  };
  for (const char* name : {"tokenizer_config.json", "tokenizer.json"}) {
    const fs::path path = model / name;
    if (!fs::exists(path)) continue;
    const Json json =
        parse_json(read_file(path, max_json, Pipes::accept), path.string(), LargeIntegers::round);
    for (const char* key : {"added_tokens_decoder", "added_tokens"}) {
      if (!json.is_object() || !json.contains(key)) continue;
      for (const Json& token : json.at(key)) collect(token);
    }
  }
  return tokens;
}

ModelTemplates from_directory(const fs::path& model) {
  ModelTemplates templates{.usual = read_template(model, false),
                           .with_tools = read_template(model, true),
                           .model_texts = read_model_texts(model)};
  const bool same =
      templates.usual && templates.with_tools && templates.usual->source == templates.with_tools->source;
  if (same) templates.with_tools.reset();
  return templates;
}

ModelTemplates from_gguf(const fs::path& file) {
  const GgufMetadata metadata = read_gguf_metadata(file);
  const auto tokens = metadata.strings("tokenizer.ggml.tokens").value_or(std::vector<std::string_view>{});
  ModelTemplates templates;
  for (const char* kind : {"bos", "eos", "unk", "sep", "pad", "cls", "mask"}) {
    const auto id = metadata.integer(fmt::format("tokenizer.ggml.{}_token_id", kind));
    if (!id || *id < 0 || *id >= static_cast<std::int64_t>(tokens.size())) continue;
    templates.model_texts[fmt::format("{}_token", kind)] = std::string(tokens[static_cast<std::size_t>(*id)]);
  }
  const auto find = [&](const char* key) -> std::optional<TemplateSource> {
    const auto source = metadata.text(key);
    if (!source) return std::nullopt;
    return TemplateSource{fmt::format("{}: {}", file.string(), key), std::string(*source),
                          templates.model_texts};
  };
  templates.usual = find("tokenizer.chat_template");
  templates.with_tools = find("tokenizer.chat_template.tool_use");
  return templates;
}

// The file that holds a directory's or a .gguf's vocabulary and template: the .gguf, or the directory itself.
fs::path holder_of(const fs::path& model) {
  if (!fs::is_directory(model)) return model;
  for (const char* name : {"tokenizer_config.json", "chat_template.jinja", "tokenizer.json"}) {
    if (fs::exists(model / name)) return model;
  }
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(model)) {
    if (entry.path().extension() == ".gguf") files.insert(entry.path());
  }
  return files.empty() ? model : *files.begin();
}

TemplateSource use_default(const fs::path& model, const ModelTemplates& templates) {
  std::set<std::string, std::less<>> tokens;
  if (is_gguf_file(model)) {
    const GgufMetadata metadata = read_gguf_metadata(model);
    const auto all = metadata.strings("tokenizer.ggml.tokens").value_or(std::vector<std::string_view>{});
    tokens.insert(all.begin(), all.end());
  } else {
    tokens = added_tokens(model);
  }
  const DefaultTemplate* found =
      choose_default_template([&](std::string_view token) { return tokens.contains(token); });
  if (found == nullptr) throw no_chat_format(model);
  return {fmt::format("{}: default template of {}", model.string(), found->family),
          std::string(found->source), templates.model_texts};
}

}  // namespace

Error no_chat_format(const fs::path& model) {
  return {ErrorKind::unsupported,
          fmt::format("{}: the model has no chat template", model.string()),
          {.why = "its files hold none, and its vocabulary has the control tokens of no format we know; it "
                  "probably completes text and does not chat",
           .next = "complete text with it, or give a template as FILE.jinja"}};
}

ModelTemplates find_templates(const fs::path& model) {
  const fs::path holder = holder_of(model);
  return is_gguf_file(holder) ? from_gguf(holder) : from_directory(holder);
}

TemplateSource open_template(const fs::path& model, bool with_tools) {
  const bool is_file = !fs::is_directory(model) && !is_gguf_file(model);
  if (is_file) {
    if (fs::exists(model) && model.extension() != ".jinja" && model.extension() != ".j2") {
      fail(ErrorKind::invalid_request,
           fmt::format("{}: expected a model directory, a .gguf file or a template (.jinja, .j2)",
                       model.string()),
           {.why = "any other file would be taken for a template, and its bytes for a prompt",
            .next = "if it is a template, give it one of these names"});
    }
    return {model.string(), read_file(model, jinja::Budgets{}.source_bytes, Pipes::accept), {}};
  }
  const ModelTemplates templates = find_templates(model);
  if (templates.with_tools && (with_tools || !templates.usual)) return *templates.with_tools;
  return templates.usual ? *templates.usual : use_default(holder_of(model), templates);
}

}  // namespace inferno
