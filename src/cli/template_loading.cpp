#include "cli/template_loading.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "chat/default_templates.h"
#include "checkpoint/gguf_metadata.h"
#include "cli/read_file.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t largest_json = std::uint64_t{256} << 20;

TemplateSource use_default(const std::string& model, std::map<std::string, std::string> texts,
                           const std::function<bool(std::string_view)>& has_token) {
  const DefaultTemplate* found = choose_default_template(has_token);
  if (found == nullptr) {
    fail(ErrorKind::unsupported, fmt::format("{}: the model has no chat template", model),
         {.why = "its files hold none, and its vocabulary has the control tokens of no format we know; it "
                 "probably completes text and does not chat",
          .next = "complete text with it, or give a template as FILE.jinja"});
  }
  return {fmt::format("{}: default template of {}", model, found->family), std::string(found->source),
          std::move(texts)};
}

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
    const Json json = parse_json(read_file(path, largest_json), path.string());
    for (const char* key : {"added_tokens_decoder", "added_tokens"}) {
      if (!json.is_object() || !json.contains(key)) continue;
      for (const Json& token : json.at(key)) collect(token);
    }
  }
  return tokens;
}

TemplateSource from_directory(const fs::path& model, bool with_tools) {
  if (auto source = read_template(model, with_tools)) return *std::move(source);
  const auto tokens = added_tokens(model);
  return use_default(model.string(), read_model_texts(model),
                     [&](std::string_view token) { return tokens.contains(token); });
}

TemplateSource from_gguf(const fs::path& file, bool with_tools) {
  const GgufMetadata metadata = read_gguf_metadata(file);
  const auto tokens = metadata.strings("tokenizer.ggml.tokens").value_or(std::vector<std::string_view>{});
  std::map<std::string, std::string> texts;
  for (const char* kind : {"bos", "eos", "unk", "sep", "pad", "cls", "mask"}) {
    const auto id = metadata.integer(fmt::format("tokenizer.ggml.{}_token_id", kind));
    if (!id || *id < 0 || *id >= static_cast<std::int64_t>(tokens.size())) continue;
    texts[fmt::format("{}_token", kind)] = std::string(tokens[static_cast<std::size_t>(*id)]);
  }
  for (const char* key : {with_tools ? "tokenizer.chat_template.tool_use" : "tokenizer.chat_template",
                          "tokenizer.chat_template"}) {
    if (const auto source = metadata.text(key)) {
      return {fmt::format("{}: {}", file.string(), key), std::string(*source), std::move(texts)};
    }
  }
  return use_default(file.string(), std::move(texts), [&](std::string_view token) {
    return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
  });
}

}  // namespace

TemplateSource open_template(const fs::path& model, bool with_tools) {
  if (fs::is_directory(model)) {
    if (fs::exists(model / "tokenizer_config.json") || fs::exists(model / "chat_template.jinja") ||
        fs::exists(model / "tokenizer.json")) {
      return from_directory(model, with_tools);
    }
    std::set<fs::path> files;
    for (const auto& entry : fs::directory_iterator(model)) {
      if (entry.path().extension() == ".gguf") files.insert(entry.path());
    }
    if (!files.empty()) return from_gguf(*files.begin(), with_tools);
    return from_directory(model, with_tools);
  }
  if (model.extension() == ".gguf") return from_gguf(model, with_tools);
  return {model.string(), read_file(model, jinja::Budgets{}.source_bytes), {}};
}

}  // namespace inferno
