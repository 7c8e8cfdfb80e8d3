// tokenizer.json, and the files around it, to a Tokenizer.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "text/pipeline.h"
#include "text/special_tokens.h"
#include "text/tokenizer_json_model.h"
#include "text/tokenizer_json_parts.h"

namespace inferno {
namespace {

constexpr std::uint64_t max_file = 128ULL << 20;  // real ones reach 35 MB

Decoder decoder_of(const JsonValue& root) {
  if (const auto json = root.find("decoder")) return read_decoder(*json);
  // Without a decoder tokens are joined by spaces: each brings one along, and the first loses it again.
  Decoder decoder;
  decoder.steps.emplace_back(decode::Prepend{" "});
  decoder.style.leading_spaces_to_drop = 1;
  return decoder;
}

void check_ids(const std::vector<TokenId>& ids, const TokenTexts& texts, std::string_view where) {
  for (const TokenId id : ids) {
    if (!texts.has(id)) fail(ErrorKind::corrupt, fmt::format("{}: there is no token {}", where, id));
  }
}

std::optional<TokenId> id_of(const std::optional<std::string>& text, const JsonModel& model) {
  if (!text) return std::nullopt;
  const auto found = std::ranges::find(model.added, *text, &AddedToken::content);
  return found == model.added.end() ? std::nullopt : std::optional(found->id);
}

// `template_decides`: tokenizer.json says itself what goes around a text, so the flags beside it do not.
void apply_settings(TokenizerParts& parts, const SpecialTokenSettings& settings, const JsonModel& model,
                    bool template_decides) {
  parts.bos = id_of(settings.bos, model);
  const auto eos = id_of(settings.eos, model);
  if (eos) parts.end_tokens.push_back(*eos);
  for (const TokenId id : settings.end_ids) {
    // Ids beyond the vocabulary occur (padded embeddings); no text ever holds them.
    const bool known = std::ranges::find(parts.end_tokens, id) != parts.end_tokens.end();
    if (model.texts.has(id) && !known) parts.end_tokens.push_back(id);
  }
  if (template_decides) return;
  if (settings.add_bos && parts.bos) parts.prefix.push_back(*parts.bos);
  if (settings.add_eos && eos) parts.suffix.push_back(*eos);
}

// `settings` are the facts of the files beside tokenizer.json.
TokenizerParts read_parts(const JsonValue& root, const SpecialTokenSettings& settings) {
  TokenizerParts parts;
  SplitSteps split;
  if (const auto json = root.find("pre_tokenizer")) split = read_pre_tokenizer(*json);
  std::vector<NormalizerStep> normalizer;
  if (const auto json = root.find("normalizer")) normalizer = read_normalizer(*json);
  const bool writes_bytes = std::ranges::any_of(normalizer, [](const NormalizerStep& step) {
    return std::holds_alternative<normalize::WriteBytes>(step);
  });
  parts.normalizer = Normalizer(std::move(normalizer), root.where() + ": normalizer");
  parts.pre_tokenizer = PreTokenizer(std::move(split.steps), split.in_byte_alphabet || writes_bytes);

  JsonModel model = read_model(root, settings, split.byte_level || writes_bytes);
  const Decoder decoder = decoder_of(root);
  parts.style = decoder.style;
  parts.bytes = TokenTexts(model.texts.size());
  for (TokenId id = 0; id < model.texts.size(); ++id) {
    if (model.texts.has(id)) parts.bytes.set(id, decoder.bytes_of(model.texts.text(id)));
  }

  SpecialAround around;
  if (const auto json = root.find("post_processor")) around = read_post_processor(*json);
  check_ids(around.before, model.texts, root.where() + ": post_processor");
  check_ids(around.after, model.texts, root.where() + ": post_processor");
  parts.prefix = around.before;
  parts.suffix = around.after;
  apply_settings(parts, settings, model, around.decides);
  parts.model = std::move(model.model);
  parts.added = std::move(model.added);
  return parts;
}

}  // namespace

std::unique_ptr<Tokenizer> parse_tokenizer(std::string tokenizer_json, std::string_view name) {
  const JsonDocument document(std::move(tokenizer_json), name);
  return assemble(read_parts(document.root().object(), {}));
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& model) {
  if (!std::filesystem::is_directory(model))
    return parse_tokenizer(read_file(model, max_file), model.string());
  const std::filesystem::path path = model / "tokenizer.json";
  if (!std::filesystem::exists(path)) {
    const bool sentencepiece = std::filesystem::exists(model / "tokenizer.model");
    fail(
        ErrorKind::not_found, fmt::format("{}: no tokenizer.json", model.string()),
        {.why = sentencepiece ? "tokenizer.model alone (a sentencepiece file) is not supported" : "",
         .next = "download tokenizer.json of this model, or use a GGUF file, which contains its vocabulary"});
  }
  const JsonDocument document(read_file(path, max_file), path.string());
  return assemble(read_parts(document.root().object(), read_settings(model)));
}

}  // namespace inferno
