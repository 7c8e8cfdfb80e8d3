#include "service/loading/model_files.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <set>

#include "base/file.h"
#include "chat/default_templates.h"
#include "chat/json.h"
#include "chat/template_format.h"
#include "checkpoint/gguf/config.h"
#include "checkpoint/gguf/reader.h"
#include "checkpoint/open_checkpoint.h"
#include "text/gguf/tokenizer_gguf.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t max_json = std::uint64_t{256} << 20;
using Texts = std::set<std::string, std::less<>>;

std::vector<std::string> strings(const GgufMetadata& metadata, std::string_view key) {
  const auto views = metadata.strings(key);
  if (!views) return {};
  return {views->begin(), views->end()};
}

std::optional<TokenId> token_id(const GgufMetadata& metadata, std::string_view key) {
  const auto id = metadata.integer(key);
  if (!id) return std::nullopt;
  // Some converters write 2^32 - 1 for "none".
  if (*id == std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  if (*id < 0 || *id > std::numeric_limits<TokenId>::max()) {
    fail(ErrorKind::corrupt, fmt::format("{}: {} is {}, not a token id", metadata.origin(), key, *id));
  }
  return static_cast<TokenId>(*id);
}

GgufVocabulary vocabulary_of(const GgufMetadata& metadata) {
  const auto model = metadata.text("tokenizer.ggml.model");
  if (!model) {
    fail(ErrorKind::corrupt, fmt::format("{}: no tokenizer.ggml.model, so no vocabulary", metadata.origin()),
         {.why = {}, .next = "later parts of a split model have no vocabulary: name the first part"});
  }
  GgufVocabulary vocabulary{.file = metadata.origin(),
                            .model = std::string(*model),
                            .pre = std::string(metadata.text("tokenizer.ggml.pre").value_or("")),
                            .tokens = strings(metadata, "tokenizer.ggml.tokens"),
                            .scores = {},
                            .token_types = {},
                            .merges = strings(metadata, "tokenizer.ggml.merges"),
                            .bos = token_id(metadata, "tokenizer.ggml.bos_token_id"),
                            .eos = token_id(metadata, "tokenizer.ggml.eos_token_id"),
                            .unknown = token_id(metadata, "tokenizer.ggml.unknown_token_id"),
                            .other_end_tokens = {},
                            .add_bos = metadata.flag("tokenizer.ggml.add_bos_token"),
                            .add_eos = metadata.flag("tokenizer.ggml.add_eos_token"),
                            .add_space_prefix = metadata.flag("tokenizer.ggml.add_space_prefix")};
  if (const auto scores = metadata.numbers("tokenizer.ggml.scores")) {
    for (const double score : *scores) vocabulary.scores.push_back(static_cast<float>(score));
  }
  if (const auto types = metadata.integers("tokenizer.ggml.token_type")) {
    for (const std::int64_t type : *types) {
      // A value out of range stays out of range, so that the tokenizer's error names the entry.
      vocabulary.token_types.push_back(type < 0 || type > 100 ? -1 : static_cast<std::int32_t>(type));
    }
  }
  for (const std::string_view key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    if (const auto id = token_id(metadata, key)) vocabulary.other_end_tokens.push_back(*id);
  }
  return vocabulary;
}

ModelTemplates templates_of(const GgufMetadata& metadata) {
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
    return TemplateSource{fmt::format("{}: {}", metadata.origin(), key), std::string(*source),
                          templates.model_texts};
  };
  templates.usual = find("tokenizer.chat_template");
  templates.with_tools = find("tokenizer.chat_template.tool_use");
  return templates;
}

ModelTemplates templates_of(const fs::path& folder) {
  ModelTemplates templates{.usual = read_template(folder, false),
                           .with_tools = read_template(folder, true),
                           .model_texts = read_model_texts(folder)};
  const bool same =
      templates.usual && templates.with_tools && templates.usual->source == templates.with_tools->source;
  if (same) templates.with_tools.reset();
  return templates;
}

// The texts of the added tokens in tokenizer_config.json and tokenizer.json.
Texts added_tokens(const fs::path& folder) {
  Texts tokens;
  const auto collect = [&](const Json& token) {
    if (token.is_object() && token.contains("content") && token.at("content").is_string()) {
      tokens.insert(token.at("content").get<std::string>());
    }
  };
  for (const char* name : {"tokenizer_config.json", "tokenizer.json"}) {
    const fs::path path = folder / name;
    if (!fs::exists(path)) continue;
    const Json json = parse_json(read_file(path, max_json), path.string(), LargeIntegers::round);
    for (const char* key : {"added_tokens_decoder", "added_tokens"}) {
      if (!json.is_object() || !json.contains(key)) continue;
      for (const Json& token : json.at(key)) collect(token);
    }
  }
  return tokens;
}

}  // namespace

ModelFiles::ModelFiles(fs::path path) : path_(std::move(path)), is_folder_(fs::is_directory(path_)) {
  fs::path gguf;
  if (is_folder_) {
    constexpr std::array names = {"tokenizer_config.json", "chat_template.jinja", "tokenizer.json"};
    for (const char* name : names) has_template_files_ |= fs::exists(path_ / name);
    has_tokenizer_json_ = fs::exists(path_ / "tokenizer.json");
    // All GGUF files of a folder are quantizations of one model, with the same vocabulary.
    const std::vector<std::string> files =
        has_tokenizer_json_ ? std::vector<std::string>{} : gguf_files(path_);
    if (!files.empty()) gguf = path_ / files.front();
  } else if (is_gguf_file(path_)) {
    gguf = path_;
  }
  if (!gguf.empty()) metadata_ = std::make_shared<const GgufMetadata>(read_gguf_metadata(gguf));
}

bool ModelFiles::has_tokenizer() const {
  return has_tokenizer_json_ || metadata_ || (!is_folder_ && fs::exists(path_));
}

std::unique_ptr<Tokenizer> ModelFiles::tokenizer() const {
  if (metadata_) return make_tokenizer(vocabulary_of(*metadata_));
  if (is_folder_) return load_tokenizer(path_);
  try {
    return load_tokenizer(path_);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt || !error.advice().next.empty()) throw;
    fail(error.kind(), error.what(),
         {.why = error.advice().why,
          .next = "pass a model's name or folder, a .gguf file or a tokenizer.json"});
  }
}

ModelTemplates ModelFiles::templates() const {
  return metadata_ && !has_template_files_ ? templates_of(*metadata_) : templates_of(path_);
}

TemplateSource ModelFiles::chat_template(bool with_tools) const {
  ModelTemplates own = templates();
  if (own.with_tools && (with_tools || !own.usual)) return *std::move(own.with_tools);
  if (own.usual) return *std::move(own.usual);
  Texts tokens;
  if (metadata_ && !has_template_files_) {
    for (const std::string& token : strings(*metadata_, "tokenizer.ggml.tokens")) tokens.insert(token);
  } else {
    tokens = added_tokens(path_);
  }
  const DefaultTemplate* found =
      choose_default_template([&](std::string_view token) { return tokens.contains(token); });
  if (found == nullptr) throw no_chat_format(path_);
  return {fmt::format("{}: default template of {}", path_.string(), found->family),
          std::string(found->source), std::move(own.model_texts)};
}

std::unique_ptr<ChatFormat> ModelFiles::chat_format(const Tokenizer& tokenizer,
                                                    const ChatOptions& options) const {
  // Harmony is implemented natively: the template of gpt-oss is not even read.
  if (is_o200k_harmony(tokenizer)) return make_chat_format(tokenizer, {}, options);
  return make_chat_format(tokenizer, templates(), options);
}

std::unique_ptr<ChatFormat> ModelFiles::chat_format(const Tokenizer& tokenizer,
                                                    const fs::path& template_file) const {
  const TemplateSource source{template_file.string(), read_file(template_file, jinja::Budgets{}.source_bytes),
                              templates().model_texts};
  return make_template_format(tokenizer, source, nullptr, {});
}

GenerationConfig ModelFiles::generation_config() const {
  if (metadata_ && !(is_folder_ && fs::exists(path_ / "generation_config.json"))) {
    return inferno::generation_config(gguf_generation_values(*metadata_));
  }
  return is_folder_ ? read_generation_config(path_) : GenerationConfig{};
}

std::unique_ptr<Checkpoint> ModelFiles::checkpoint() const {
  return open_checkpoint(path_, metadata_);
}

TemplateSource read_template_file(const fs::path& file) {
  if (fs::exists(file) && file.extension() != ".jinja" && file.extension() != ".j2") {
    fail(ErrorKind::invalid_request,
         fmt::format("{}: expected a model directory, a .gguf file or a template (.jinja, .j2)",
                     file.string()),
         {.why = "any other file would be rendered as if it were a template",
          .next = "if it is a template, rename it to end in .jinja or .j2"});
  }
  return {file.string(), read_file(file, jinja::Budgets{}.source_bytes), {}};
}

Error no_chat_format(const fs::path& model) {
  return {
      ErrorKind::unsupported,
      fmt::format("{}: the model has no chat template", model.string()),
      {.why = "its files contain none, and its vocabulary has the control tokens of no known chat format; "
              "it probably completes text and does not chat",
       .next = "use it for text completion, or pass a template as FILE.jinja"}};
}

}  // namespace inferno
