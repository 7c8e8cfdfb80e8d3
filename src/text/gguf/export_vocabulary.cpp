#include "text/gguf/export_vocabulary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/utf8.h"
#include "text/json/tokenizer_json.h"
#include "text/json/tokenizer_json_model.h"

namespace inferno {
namespace {

constexpr std::size_t tokens_at_once = 200;
constexpr int long_texts = 2000;
constexpr int tokens_of_a_text = 12;

bool differ(const Tokenizer& a, const Tokenizer& b, std::string_view text) {
  return a.encode(text) != b.encode(text) || a.encode_with_special(text) != b.encode_with_special(text);
}

// Encodes all texts in one call, one per line, because tokens do not merge across line ends and calls are
// slow.
std::optional<std::string> first_different(const Tokenizer& a, const Tokenizer& b,
                                           const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text + '\n';
  if (!differ(a, b, all)) return std::nullopt;
  const auto found = std::ranges::find_if(texts, [&](const std::string& text) { return differ(a, b, text); });
  return found == texts.end() ? all : *found;
}

// A generator that yields the same numbers on every machine.
class Random {
 public:
  TokenId below(int limit) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<TokenId>((state_ >> 33) % static_cast<std::uint64_t>(limit));
  }

 private:
  std::uint64_t state_ = 1;
};

}  // namespace

std::optional<std::string> first_difference(const Tokenizer& original, const Tokenizer& copy) {
  std::vector<std::string> some;
  for (TokenId id = 0; id < original.size(); ++id) {
    const std::string_view bytes = original.bytes(id);
    if (bytes != copy.bytes(id)) return std::string(bytes);
    const bool plain = !bytes.empty() && !utf8::first_invalid(bytes) && !original.special(bytes);
    if (plain) some.emplace_back(bytes);
    if (some.size() < tokens_at_once && id + 1 < original.size()) continue;
    if (auto text = first_different(original, copy, some)) return text;
    some.clear();
  }
  constexpr std::array<std::string_view, 6> written = {
      "",
      "The quick brown fox, aged 12345, doesn't jump.\n\n  Twice!\t\r\n",
      "  two spaces  ",
      "日本語の文章とemoji 🦙🦙",
      "e\xCC\x81t\xC3\xA9 ÜBER straße ﬁ",
      "for (int i = 0; i < 10; ++i) {\n\treturn x->y;\n}"};
  for (const std::string_view text : written) {
    if (differ(original, copy, text)) return std::string(text);
  }
  Random random;
  for (int i = 0; i < long_texts; ++i) {
    std::vector<TokenId> ids;
    for (int j = 0; j < tokens_of_a_text; ++j) {
      const TokenId id = random.below(original.size());
      if (!original.special(original.bytes(id))) ids.push_back(id);
    }
    const std::string text = original.decode(ids);
    if (differ(original, copy, text)) return text;
  }
  return std::nullopt;
}

std::optional<std::string> first_control_difference(const Tokenizer& original, const Tokenizer& copy) {
  for (TokenId id = 0; id < original.size(); ++id) {
    const std::string token(original.bytes(id));
    if (!original.special(token)) continue;
    const std::string text = token + "One. " + token + " Two " + token + token + "\n" + token;
    if (differ(original, copy, text)) return text;
  }
  return std::nullopt;
}

namespace {

constexpr std::uint64_t max_file = 128ULL << 20;
constexpr std::string_view word_start = "▁";

constexpr std::string_view alternatives =
    "use the model as it is; or convert it with --no-vocabulary and keep the GGUF file in a folder with "
    "tokenizer.json, which Inferno reads together";

[[noreturn]] void refuse(const JsonValue& json, const std::string& what) {
  fail(ErrorKind::unsupported, fmt::format("{}: {}", json.where(), what),
       {.why = "a GGUF file can only name one of a few known tokenizers, and this is not one of them",
        .next = std::string(alternatives)});
}

// The patterns of the steps of a pre-tokenizer, in order.
void add_patterns(std::vector<std::string>& patterns, const JsonValue& json) {
  const std::string_view type = json["type"].text();
  if (type == "Sequence") {
    const JsonValue parts = json["pretokenizers"];
    for (std::size_t i = 0; i < parts.size(); ++i) add_patterns(patterns, parts[i]);
  } else if (type == "ByteLevel" && !json.flag("add_prefix_space", true)) {
    if (json.flag("use_regex", true)) patterns.emplace_back(gpt2_pattern);
  } else if (type == "Digits" && json.flag("individual_digits", false)) {
    patterns.emplace_back("\\p{N}");
  } else if (type == "Split" && json["pattern"].find("Regex") && json["behavior"].text() == "Isolated" &&
             !json.flag("invert", false)) {
    patterns.emplace_back(json["pattern"]["Regex"].text());
  } else {
    refuse(json, fmt::format("a GGUF file cannot split text by {} with these settings", quote(type)));
  }
}

bool normalizes_to_nfc(const JsonValue& root) {
  const auto json = root.find("normalizer");
  if (!json) return false;
  const std::vector<NormalizerStep> steps = read_normalizer(*json);
  const auto* form = steps.size() == 1 ? std::get_if<normalize::ToForm>(&steps.front()) : nullptr;
  if (form != nullptr && form->form == UnicodeForm::nfc) return true;
  if (!steps.empty()) refuse(*json, "a GGUF file cannot express how this tokenizer normalizes text");
  return false;
}

std::string name_of_split(const JsonValue& root) {
  std::vector<std::string> patterns;
  const JsonValue json = root["pre_tokenizer"];
  add_patterns(patterns, json);
  const GgufSplit* split =
      find_split_by_patterns(patterns, normalizes_to_nfc(root), root["model"].flag("ignore_merges", false));
  if (split == nullptr) {
    refuse(json, fmt::format("no known tokenizer.ggml.pre splits text by {}",
                             quote(fmt::format("{}", fmt::join(patterns, " then ")), 400)));
  }
  return std::string(split->name);
}

// Metaspace, or a normalizer with the same effect: a space becomes "▁", and one is prepended to the text.
bool prepends_space(const JsonValue& root, std::vector<std::string>& notes) {
  bool prepends = false, replaces = false;
  if (const auto json = root.find("normalizer")) {
    for (const NormalizerStep& step : read_normalizer(*json)) {
      const auto* prepend = std::get_if<normalize::Prepend>(&step);
      const auto* replace = std::get_if<normalize::ReplaceText>(&step);
      if (prepend != nullptr && prepend->prefix == word_start) {
        prepends = true;
      } else if (replace != nullptr && replace->pattern == " " && replace->content == word_start) {
        replaces = true;
      } else {
        refuse(*json, "a GGUF file cannot express how this tokenizer normalizes text");
      }
    }
  }
  if (const auto json = root.find("pre_tokenizer")) {
    const std::vector<PreTokenizerStep> steps = read_pre_tokenizer(*json).steps;
    const auto* space = steps.size() == 1 ? std::get_if<pretokenize::Metaspace>(&steps.front()) : nullptr;
    if (space == nullptr || space->replacement != word_start) {
      refuse(*json, "a GGUF file cannot express how this tokenizer splits text");
    }
    prepends = prepends || space->prepend != PrependScheme::never;
    replaces = true;
    if (space->prepend == PrependScheme::first) {
      notes.emplace_back("a space is also prepended to the text after a control token");
    }
  }
  if (!replaces) refuse(root, "words do not begin with ▁, and the vocabulary is not byte-level");
  return prepends;
}

bool is_byte_token(std::string_view text) {
  return text.size() == 6 && text.starts_with("<0x") && text.ends_with('>');
}

class Exporter {
 public:
  Exporter(const JsonValue& root, const SpecialTokenSettings& settings) : root_(root) {
    if (const auto json = root.find("pre_tokenizer")) byte_level_ = read_pre_tokenizer(*json).byte_level;
    model_ = read_model(root, settings, byte_level_);
    if (!root["model"]["vocab"].raw().IsObject()) {
      refuse(root["model"], "unigram vocabularies are not supported in GGUF files");
    }
  }

  void fill(ExportedVocabulary& to, int size) {
    GgufVocabulary& vocabulary = to.vocabulary;
    if (model_.texts.size() > size) {
      fail(ErrorKind::corrupt,
           fmt::format("{}: {} tokens for a model that has {}", root_.where(), model_.texts.size(), size));
    }
    vocabulary.model = byte_level_ ? "gpt2" : "llama";
    vocabulary.pre = byte_level_ ? name_of_split(root_) : "default";
    if (!byte_level_) vocabulary.add_space_prefix = prepends_space(root_, to.notes);
    fill_tokens(vocabulary, size);
    if (byte_level_) {
      fill_merges(vocabulary);
    } else {
      fill_scores(vocabulary);
    }
    const auto takes_space = [](const AddedToken& t) { return t.lstrip || t.rstrip || t.single_word; };
    if (std::ranges::any_of(model_.added, takes_space)) {
      to.notes.emplace_back("control tokens no longer strip adjacent white space: GGUF has no key for it");
    }
  }

 private:
  void fill_tokens(GgufVocabulary& vocabulary, int size) const {
    const auto set_type = [&](TokenId id, GgufTokenType type) {
      vocabulary.token_types[static_cast<std::size_t>(id)] = static_cast<std::int32_t>(type);
    };
    vocabulary.token_types.assign(static_cast<std::size_t>(size),
                                  static_cast<std::int32_t>(GgufTokenType::normal));
    for (TokenId id = 0; id < size; ++id) {
      const bool known = model_.texts.has(id);
      vocabulary.tokens.emplace_back(known ? std::string(model_.texts.text(id)) : fmt::format("[PAD{}]", id));
      if (!known) set_type(id, GgufTokenType::unused);
      if (known && !byte_level_ && is_byte_token(vocabulary.tokens.back())) set_type(id, GgufTokenType::byte);
    }
    const auto unknown = root_["model"].find("unk_token");
    for (const AddedToken& token : model_.added) {
      set_type(token.id, token.special ? GgufTokenType::control : GgufTokenType::user_defined);
      if (byte_level_ || !unknown || unknown->text() != token.content) continue;
      set_type(token.id, GgufTokenType::unknown);
      vocabulary.unknown = token.id;
    }
  }

  template <class Take>
  void for_each_merge(const Take& take) const {
    for (const auto& merge : root_["model"]["merges"].array().raw().GetArray()) {
      if (merge.IsString()) {
        const std::string_view both = text_of(merge);
        const std::size_t space = both.find(' ');
        take(both.substr(0, space), both.substr(space + 1));
      } else {
        take(text_of(merge[0]), text_of(merge[1]));
      }
    }
  }

  void fill_merges(GgufVocabulary& vocabulary) const {
    for_each_merge([&](std::string_view left, std::string_view right) {
      // No byte is written as a space, so such a merge never applies, and GGUF could not store it.
      const bool spaced =
          left.find(' ') != std::string_view::npos || right.find(' ') != std::string_view::npos;
      if (!spaced) vocabulary.merges.push_back(fmt::format("{} {}", left, right));
    });
  }

  // sentencepiece applies the merge whose result has the best score. Hugging Face lists merges in that order,
  // so the position of a piece's first merge serves as its score.
  void fill_scores(GgufVocabulary& vocabulary) const {
    std::unordered_map<std::string_view, std::size_t> ids;
    for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) ids.try_emplace(vocabulary.tokens[id], id);
    vocabulary.scores.assign(vocabulary.tokens.size(), 0.0f);
    std::vector<bool> scored(vocabulary.tokens.size(), false);
    int rank = 0;
    std::string both;
    for_each_merge([&](std::string_view left, std::string_view right) {
      both.assign(left).append(right);
      const auto found = ids.find(both);
      if (found != ids.end() && !scored[found->second]) {
        scored[found->second] = true;
        vocabulary.scores[found->second] = static_cast<float>(-rank);
      }
      ++rank;
    });
    constexpr auto normal = static_cast<std::int32_t>(GgufTokenType::normal);
    for (std::size_t id = 0; id < scored.size(); ++id) {
      if (!scored[id] && vocabulary.token_types[id] == normal)
        vocabulary.scores[id] = static_cast<float>(-++rank);
    }
  }

  const JsonValue& root_;
  bool byte_level_ = false;
  JsonModel model_;
};

// The begin and end tokens of the original in GGUF's terms.
void fill_special(ExportedVocabulary& to, const Tokenizer& original) {
  GgufVocabulary& vocabulary = to.vocabulary;
  vocabulary.bos = original.bos();
  const auto ends = original.end_tokens();
  if (!ends.empty()) vocabulary.eos = ends[0];
  for (std::size_t i = 1; i < std::min<std::size_t>(ends.size(), 3); ++i) {
    vocabulary.other_end_tokens.push_back(ends[i]);
  }
  const std::vector<TokenId> both = original.add_special({});
  TokenId text = 0;  // any token that is not added by add_special
  while (std::ranges::find(both, text) != both.end()) ++text;
  const std::vector<TokenId> around = original.add_special({text});
  const auto at = std::ranges::find(around, text);
  const std::vector<TokenId> before(around.begin(), at), after(std::next(at), around.end());
  if (!vocabulary.bos && before.size() == 1) vocabulary.bos = before.front();
  if (!vocabulary.eos && after.size() == 1) vocabulary.eos = after.front();
  vocabulary.add_bos = !before.empty();
  vocabulary.add_eos = !after.empty();
  const bool fits = (before.empty() || (before.size() == 1 && vocabulary.bos == before.front())) &&
                    (after.empty() || (after.size() == 1 && vocabulary.eos == after.front()));
  if (fits) return;
  fail(ErrorKind::unsupported,
       fmt::format("{}: surrounds text with tokens other than its begin and end tokens", vocabulary.file),
       {.why = "a GGUF file can only name a begin and an end token", .next = {}});
}

}  // namespace

ExportedVocabulary export_vocabulary(const std::filesystem::path& model, int size) {
  const std::unique_ptr<Tokenizer> original = load_tokenizer(model);
  const std::filesystem::path path = model / "tokenizer.json";
  const JsonDocument document(read_file(path, max_file), path.string());
  ExportedVocabulary out;
  out.vocabulary.file = path.string();
  const JsonValue root = document.root();
  Exporter(root.object(), read_settings(model)).fill(out, size);
  fill_special(out, *original);

  const std::unique_ptr<Tokenizer> exported = make_tokenizer(out.vocabulary);
  if (const auto difference = first_difference(*original, *exported)) {
    fail(ErrorKind::unsupported,
         fmt::format("{}: as GGUF it would encode {} differently", path.string(), quote(*difference)),
         {.why = "a GGUF vocabulary cannot express everything that this tokenizer does",
          .next = std::string(alternatives)});
  }
  if (const auto text = first_control_difference(*original, *exported)) {
    out.notes.push_back(
        fmt::format("text with control tokens may be split differently, for example {}", quote(*text)));
  }
  for (const TokenId end : original->end_tokens()) {
    if (std::ranges::find(exported->end_tokens(), end) == exported->end_tokens().end()) {
      out.notes.push_back(fmt::format("token {} no longer ends a reply: GGUF stores three end tokens", end));
    }
  }
  return out;
}

}  // namespace inferno
