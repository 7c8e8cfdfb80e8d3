#include "text/tokenizer_json_parts.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "text/tokenizer_json_model.h"

namespace inferno {
namespace {

constexpr int deepest_sequence = 8;

[[noreturn]] void unknown_type(const JsonValue& json, std::string_view type) {
  fail(ErrorKind::unsupported,
       fmt::format("{}: component type {} is not supported", json.where(), quote(type)));
}

void check_depth(const JsonValue& json, int depth) {
  if (depth > deepest_sequence) {
    fail(ErrorKind::unsupported,
         fmt::format("{}: more than {} sequences inside each other", json.where(), deepest_sequence));
  }
}

bool is_one_character(std::string_view text) {
  return !text.empty() && utf8::decode(text, 0).length == static_cast<int>(text.size());
}

// What Metaspace writes for a space.
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
    fail(ErrorKind::unsupported, fmt::format("{}: ByteLevel for the second time", json.where()));
  if (json.flag("add_prefix_space", true)) to.steps.emplace_back(pretokenize::AddPrefixSpace{});
  if (json.flag("use_regex", true)) {
    to.steps.emplace_back(
        pretokenize::ByPattern{.pattern = std::make_shared<const Regex>(gpt2_pattern(), json.where())});
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

// What follows Fuse sees the whole text at once. We only join token by token, so it must not matter.
void add_strip(Decoder& to, const JsonValue& json, bool fused) {
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
         fmt::format("{}: Strip behind Fuse is supported for spaces at the start", json.where()));
  }
}

void add_decoder(Decoder& to, const JsonValue& json, bool& fused, int depth) {
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
      fail(ErrorKind::unsupported,
           fmt::format("{}: Replace in a decoder is supported for text before Fuse", json.where()));
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

// "<s>" in special_tokens, which gives its ids.
void add_special_ids(std::vector<TokenId>& to, const JsonValue& json, const JsonValue& name) {
  const JsonValue ids = json["special_tokens"].object()[std::string(name.text()).c_str()]["ids"];
  for (std::size_t i = 0; i < ids.size(); ++i) to.push_back(read_token_id(ids[i]));
}

SpecialAround read_template(const JsonValue& json) {
  SpecialAround around;
  around.decides = true;
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

SpecialAround read_processor(const JsonValue& json, int depth) {
  check_depth(json, depth);
  const std::string_view type = json["type"].text();
  if (type == "ByteLevel") return {};
  if (type == "TemplateProcessing") return read_template(json);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    return {.before = {named_id(json["cls"])}, .after = {named_id(json["sep"])}, .decides = true};
  }
  if (type != "Sequence") unknown_type(json, type);
  SpecialAround all;
  const JsonValue parts = json["processors"];
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const SpecialAround around = read_processor(parts[i], depth + 1);
    all.before.insert(all.before.begin(), around.before.begin(), around.before.end());
    all.after.insert(all.after.end(), around.after.begin(), around.after.end());
    all.decides = all.decides || around.decides;
  }
  return all;
}

}  // namespace

std::string_view gpt2_pattern() {
  return R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
}

std::vector<NormalizerStep> read_normalizer(const JsonValue& json) {
  std::vector<NormalizerStep> steps;
  add_normalizer(steps, json, 0);
  return steps;
}

SplitSteps read_pre_tokenizer(const JsonValue& json) {
  SplitSteps split;
  add_pre_tokenizer(split, json, 0);
  // Writing bytes as characters only to read them back is the common case: leave both out.
  if (!split.steps.empty() && std::holds_alternative<pretokenize::WriteBytes>(split.steps.back())) {
    split.steps.pop_back();
    split.in_byte_alphabet = false;
  }
  return split;
}

Decoder read_decoder(const JsonValue& json) {
  Decoder decoder;
  bool fused = false;
  add_decoder(decoder, json, fused, 0);
  return decoder;
}

SpecialAround read_post_processor(const JsonValue& json) {
  return read_processor(json, 0);
}

}  // namespace inferno
