#include "text/json/tokenizer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/utf8.h"
#include "text/json/special_tokens.h"
#include "text/json/tokenizer_json_model.h"
#include "text/pipeline.h"

namespace inferno {
namespace {

constexpr int max_sequence_depth = 8;

[[noreturn]] void unknown_type(const JsonValue& json, std::string_view type) {
  fail(ErrorKind::unsupported,
       fmt::format("{}: component type {} is not supported", json.where(), quote(type)));
}

void check_depth(const JsonValue& json, int depth) {
  if (depth > max_sequence_depth) {
    fail(ErrorKind::unsupported,
         fmt::format("{}: sequences nested more than {} levels deep", json.where(), max_sequence_depth));
  }
}

bool is_one_character(std::string_view text) {
  return !text.empty() && utf8::decode(text, 0).length == static_cast<int>(text.size());
}

// The character that Metaspace writes for a space.
std::string read_replacement(const JsonValue& json) {
  const JsonValue value = json["replacement"];
  if (!is_one_character(value.text())) {
    fail(ErrorKind::corrupt,
         fmt::format("{}: expected one character, found {}", value.where(), quote(value.text())));
  }
  return std::string(value.text());
}

// {"String": "x"} or {"Regex": "x"}
struct Pattern {
  std::string text;
  std::shared_ptr<const Regex> regex;
};

Pattern read_pattern(const JsonValue& json) {
  if (const auto text = json.find("String")) return {.text = std::string(text->text()), .regex = {}};
  if (const auto regex = json.find("Regex")) {
    return {.text = {}, .regex = std::make_shared<const Regex>(regex->text(), regex->where())};
  }
  fail(ErrorKind::unsupported, fmt::format("{}: expected a `String` or a `Regex`", json.where()));
}

SplitBehavior read_behavior(const JsonValue& json) {
  constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> names{{
      {"Removed", SplitBehavior::removed},
      {"Isolated", SplitBehavior::isolated},
      {"MergedWithPrevious", SplitBehavior::merged_with_previous},
      {"MergedWithNext", SplitBehavior::merged_with_next},
      {"Contiguous", SplitBehavior::contiguous},
  }};
  for (const auto& [name, behavior] : names) {
    if (name == json.text()) return behavior;
  }
  fail(ErrorKind::unsupported,
       fmt::format("{}: behavior {} is not supported", json.where(), quote(json.text())));
}

void add_normalizer(std::vector<NormalizerStep>& steps, const JsonValue& json, int depth) {
  check_depth(json, depth);
  const std::string_view type = json["type"].text();
  if (type == "Sequence") {
    const JsonValue parts = json["normalizers"];
    for (std::size_t i = 0; i < parts.size(); ++i) add_normalizer(steps, parts[i], depth + 1);
  } else if (type == "NFC") {
    steps.emplace_back(normalize::ToForm{UnicodeForm::nfc});
  } else if (type == "NFD") {
    steps.emplace_back(normalize::ToForm{UnicodeForm::nfd});
  } else if (type == "NFKC") {
    steps.emplace_back(normalize::ToForm{UnicodeForm::nfkc});
  } else if (type == "NFKD") {
    steps.emplace_back(normalize::ToForm{UnicodeForm::nfkd});
  } else if (type == "Prepend") {
    steps.emplace_back(normalize::Prepend{std::string(json["prepend"].text())});
  } else if (type == "Replace") {
    Pattern pattern = read_pattern(json["pattern"]);
    std::string content(json["content"].text());
    if (pattern.regex) {
      steps.emplace_back(normalize::ReplacePattern{std::move(pattern.regex), std::move(content)});
    } else if (!pattern.text.empty()) {
      steps.emplace_back(normalize::ReplaceText{std::move(pattern.text), std::move(content)});
    }
  } else if (type == "Lowercase") {
    steps.emplace_back(normalize::Lowercase{});
  } else if (type == "StripAccents") {
    steps.emplace_back(normalize::StripAccents{});
  } else if (type == "Strip") {
    steps.emplace_back(
        normalize::Strip{.left = json.flag("strip_left", true), .right = json.flag("strip_right", true)});
  } else if (type == "ByteLevel") {
    steps.emplace_back(normalize::WriteBytes{});
  } else {
    unknown_type(json, type);
  }
}

PrependScheme read_prepend_scheme(const JsonValue& json) {
  if (const auto scheme = json.find("prepend_scheme")) {
    if (scheme->text() == "always") return PrependScheme::always;
    if (scheme->text() == "first") return PrependScheme::first;
    if (scheme->text() == "never") return PrependScheme::never;
    fail(ErrorKind::unsupported,
         fmt::format("{}: {} is not supported", scheme->where(), quote(scheme->text())));
  }
  return json.flag("add_prefix_space", true) ? PrependScheme::always : PrependScheme::never;
}

void add_byte_level(SplitSteps& to, const JsonValue& json) {
  if (to.byte_level)
    fail(ErrorKind::unsupported, fmt::format("{}: a second ByteLevel is not supported", json.where()));
  if (json.flag("add_prefix_space", true)) to.steps.emplace_back(pretokenize::AddPrefixSpace{});
  if (json.flag("use_regex", true)) {
    to.steps.emplace_back(
        pretokenize::ByPattern{.pattern = std::make_shared<const Regex>(gpt2_pattern, json.where())});
  }
  to.steps.emplace_back(pretokenize::WriteBytes{});
  to.byte_level = true;
  to.in_byte_alphabet = true;
}

void add_split(SplitSteps& to, const JsonValue& json) {
  Pattern pattern = read_pattern(json["pattern"]);
  const SplitBehavior behavior = read_behavior(json["behavior"]);
  const bool invert = json.flag("invert", false);
  if (pattern.regex) {
    to.steps.emplace_back(pretokenize::ByPattern{std::move(pattern.regex), behavior, invert});
  } else if (!pattern.text.empty()) {
    to.steps.emplace_back(pretokenize::ByText{std::move(pattern.text), behavior, invert});
  }
}

void add_pre_tokenizer(SplitSteps& to, const JsonValue& json, int depth) {
  check_depth(json, depth);
  const std::string_view type = json["type"].text();
  if (type == "Sequence") {
    const JsonValue parts = json["pretokenizers"];
    for (std::size_t i = 0; i < parts.size(); ++i) add_pre_tokenizer(to, parts[i], depth + 1);
  } else if (type == "ByteLevel") {
    add_byte_level(to, json);
  } else if (type == "Split") {
    add_split(to, json);
  } else if (type == "Digits") {
    const bool individual = json.flag("individual_digits", false);
    to.steps.emplace_back(pretokenize::ByCharacter{
        CharacterKind::numeric, individual ? SplitBehavior::isolated : SplitBehavior::contiguous});
  } else if (type == "Punctuation") {
    const auto behavior = json.find("behavior");
    to.steps.emplace_back(pretokenize::ByCharacter{
        CharacterKind::punctuation, behavior ? read_behavior(*behavior) : SplitBehavior::isolated});
  } else if (type == "WhitespaceSplit") {
    to.steps.emplace_back(pretokenize::ByCharacter{CharacterKind::white_space, SplitBehavior::removed});
  } else if (type == "Whitespace") {
    to.steps.emplace_back(
        pretokenize::ByPattern{std::make_shared<const Regex>("\\w+|[^\\w\\s]+", json.where()),
                               SplitBehavior::removed, /*invert=*/true});
  } else if (type == "Metaspace") {
    to.steps.emplace_back(pretokenize::Metaspace{.replacement = read_replacement(json),
                                                 .prepend = read_prepend_scheme(json),
                                                 .split = json.flag("split", true)});
  } else {
    unknown_type(json, type);
  }
}

// Steps after Fuse apply to the whole text. We decode token by token, so only steps for which that makes no
// difference are accepted.
void add_strip(TokenDecoder& to, const JsonValue& json, bool fused) {
  const auto count = [&](const char* name) {
    const std::int64_t value = json[name].integer();
    if (value < 0 || value > 1'000'000)
      fail(ErrorKind::corrupt, fmt::format("{}.{}: {} is out of range", json.where(), name, value));
    return static_cast<int>(value);
  };
  decode::Strip strip{
      .content = std::string(json["content"].text()), .start = count("start"), .stop = count("stop")};
  if (strip.content.empty())
    fail(ErrorKind::corrupt, fmt::format("{}.content: expected a character", json.where()));
  if (!fused) {
    to.steps.emplace_back(std::move(strip));
  } else if (strip.stop == 0 && (strip.content == " " || strip.start == 0)) {
    to.style.leading_spaces_to_drop += strip.start;
  } else {
    fail(ErrorKind::unsupported,
         fmt::format("{}: Strip after Fuse is supported for leading spaces only", json.where()));
  }
}

void add_decoder(TokenDecoder& to, const JsonValue& json, bool& fused, int depth) {
  check_depth(json, depth);
  const std::string_view type = json["type"].text();
  if (type == "Sequence") {
    const JsonValue parts = json["decoders"];
    for (std::size_t i = 0; i < parts.size(); ++i) add_decoder(to, parts[i], fused, depth + 1);
  } else if (type == "Fuse") {
    fused = true;
  } else if (type == "Strip") {
    add_strip(to, json, fused);
  } else if (type == "Replace") {
    const Pattern pattern = read_pattern(json["pattern"]);
    if (pattern.regex || (fused && !is_one_character(pattern.text))) {
      fail(
          ErrorKind::unsupported,
          fmt::format("{}: Replace in a decoder is supported for plain text before Fuse only", json.where()));
    }
    if (!pattern.text.empty())
      to.steps.emplace_back(decode::Replace{pattern.text, std::string(json["content"].text())});
  } else if (type == "Metaspace") {
    to.steps.emplace_back(decode::Replace{read_replacement(json), " "});
    to.style.first_token_without_spaces = read_prepend_scheme(json) != PrependScheme::never;
  } else if (type == "ByteFallback" && !fused) {
    to.steps.emplace_back(decode::ByteFallback{});
    to.style.replacement = utf8::Replacement::per_byte;
  } else if (type == "ByteLevel" && !fused) {
    to.steps.emplace_back(decode::ReadBytes{});
    fused = true;
  } else {
    unknown_type(json, type);
  }
}

// Looks a name such as "<s>" up in special_tokens, which holds its ids.
void add_special_ids(std::vector<TokenId>& to, const JsonValue& json, const JsonValue& name) {
  const JsonValue ids = json["special_tokens"].object()[std::string(name.text()).c_str()]["ids"];
  for (std::size_t i = 0; i < ids.size(); ++i) to.push_back(read_token_id(ids[i]));
}

SurroundingTokens read_template(const JsonValue& json) {
  SurroundingTokens around;
  around.has_template = true;
  bool text_seen = false;
  const JsonValue single = json["single"];
  for (std::size_t i = 0; i < single.size(); ++i) {
    if (const auto special = single[i].find("SpecialToken")) {
      add_special_ids(text_seen ? around.after : around.before, json, (*special)["id"]);
    } else if (const auto sequence = single[i].find("Sequence"); sequence && !text_seen) {
      text_seen = true;
    } else {
      fail(ErrorKind::unsupported,
           fmt::format("{}: expected a special token or the text, once", single[i].where()));
    }
  }
  if (!text_seen)
    fail(ErrorKind::unsupported, fmt::format("{}: the text is missing from the template", single.where()));
  return around;
}

// ["[CLS]", 101]
TokenId named_id(const JsonValue& json) {
  return read_token_id(json[std::size_t{1}]);
}

SurroundingTokens read_processor(const JsonValue& json, int depth) {
  check_depth(json, depth);
  const std::string_view type = json["type"].text();
  if (type == "ByteLevel") return {};
  if (type == "TemplateProcessing") return read_template(json);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    return {.before = {named_id(json["cls"])}, .after = {named_id(json["sep"])}, .has_template = true};
  }
  if (type != "Sequence") unknown_type(json, type);
  SurroundingTokens all;
  const JsonValue parts = json["processors"];
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const SurroundingTokens around = read_processor(parts[i], depth + 1);
    all.before.insert(all.before.begin(), around.before.begin(), around.before.end());
    all.after.insert(all.after.end(), around.after.begin(), around.after.end());
    all.has_template = all.has_template || around.has_template;
  }
  return all;
}

}  // namespace

std::vector<NormalizerStep> read_normalizer(const JsonValue& json) {
  std::vector<NormalizerStep> steps;
  add_normalizer(steps, json, 0);
  return steps;
}

SplitSteps read_pre_tokenizer(const JsonValue& json) {
  SplitSteps split;
  add_pre_tokenizer(split, json, 0);
  // Most files write bytes as characters only to read them back: skip both.
  if (!split.steps.empty() && std::holds_alternative<pretokenize::WriteBytes>(split.steps.back())) {
    split.steps.pop_back();
    split.in_byte_alphabet = false;
  }
  return split;
}

TokenDecoder read_decoder(const JsonValue& json) {
  TokenDecoder decoder;
  bool fused = false;
  add_decoder(decoder, json, fused, 0);
  return decoder;
}

SurroundingTokens read_post_processor(const JsonValue& json) {
  return read_processor(json, 0);
}

namespace {

constexpr std::uint64_t max_file = 128ULL << 20;  // real files reach 35 MB

TokenDecoder decoder_of(const JsonValue& root) {
  if (const auto json = root.find("decoder")) return read_decoder(*json);
  // Without a decoder, tokens are joined by spaces: each token gets one, and the first loses it again.
  TokenDecoder decoder;
  decoder.steps.emplace_back(decode::Prepend{" "});
  decoder.style.leading_spaces_to_drop = 1;
  return decoder;
}

void check_ids(const std::vector<TokenId>& ids, const TokenTexts& texts, std::string_view where) {
  for (const TokenId id : ids) {
    if (!texts.has(id)) fail(ErrorKind::corrupt, fmt::format("{}: no such token: {}", where, id));
  }
}

std::optional<TokenId> id_of(const std::optional<std::string>& text, const JsonModel& model) {
  if (!text) return std::nullopt;
  const auto found = std::ranges::find(model.added, *text, &AddedToken::content);
  return found == model.added.end() ? std::nullopt : std::optional(found->id);
}

// `has_template`: tokenizer.json itself defines the surrounding tokens, so the flags of other files are
// ignored.
void apply_settings(TokenizerParts& parts, const SpecialTokenSettings& settings, const JsonModel& model,
                    bool has_template) {
  parts.bos = id_of(settings.bos, model);
  const auto eos = id_of(settings.eos, model);
  if (eos) parts.end_tokens.push_back(*eos);
  for (const TokenId id : settings.end_ids) {
    // Ids above the vocabulary occur (padded embeddings) and have no text.
    const bool known = std::ranges::find(parts.end_tokens, id) != parts.end_tokens.end();
    if (model.texts.has(id) && !known) parts.end_tokens.push_back(id);
  }
  if (has_template) return;
  if (settings.add_bos && parts.bos) parts.prefix.push_back(*parts.bos);
  if (settings.add_eos && eos) parts.suffix.push_back(*eos);
}

// `settings` come from the files next to tokenizer.json.
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
  const TokenDecoder decoder = decoder_of(root);
  parts.style = decoder.style;
  parts.bytes = TokenTexts(model.texts.size());
  for (TokenId id = 0; id < model.texts.size(); ++id) {
    if (model.texts.has(id)) parts.bytes.set(id, decoder.bytes_of(model.texts.text(id)));
  }

  SurroundingTokens around;
  if (const auto json = root.find("post_processor")) around = read_post_processor(*json);
  check_ids(around.before, model.texts, root.where() + ": post_processor");
  check_ids(around.after, model.texts, root.where() + ": post_processor");
  parts.prefix = around.before;
  parts.suffix = around.after;
  apply_settings(parts, settings, model, around.has_template);
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
    fail(ErrorKind::not_found, fmt::format("{}: no tokenizer.json", model.string()),
         {.why = sentencepiece ? "a sentencepiece tokenizer.model alone is not supported" : "",
          .next = "download the model's tokenizer.json, or use a GGUF file, which contains the vocabulary"});
  }
  const JsonDocument document(read_file(path, max_file), path.string());
  return assemble(read_parts(document.root().object(), read_settings(model)));
}

}  // namespace inferno
