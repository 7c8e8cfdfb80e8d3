#include "text/gguf/tokenizer_gguf.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "text/byte_alphabet.h"
#include "text/models/bpe.h"
#include "text/pipeline.h"

namespace inferno {
namespace {

using Pattern = std::string_view;

// Each list holds the patterns of the pre_tokenizer in the model's tokenizer.json.
constexpr std::array<Pattern, 1> gpt2 = {gpt2_pattern};
constexpr std::array<Pattern, 1> llama3 = {
    R"~((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[)~"
    R"~(\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)~"};
constexpr std::array<Pattern, 1> qwen2 = {
    R"~((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n])~"
    R"~(*|\s*[\r\n]+|\s+(?!\S)|\s+)~"};
constexpr std::array<Pattern, 1> qwen35 = {
    R"~((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p)~"
    R"~({N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)~"};
constexpr std::array<Pattern, 1> o200k = {
    R"~([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|')~"
    R"~(t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm)~"
    R"~(}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s)~"
    R"~(*[\r\n]+|\s+(?!\S)|\s+)~"};
constexpr std::array<Pattern, 1> tekken = {
    R"~([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p)~"
    R"~({L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{)~"
    R"~(L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)~"};
constexpr std::array<Pattern, 2> digits_gpt2 = {R"~(\p{N})~", gpt2_pattern};
constexpr std::array<Pattern, 6> deepseek_llm = {
    R"~([\r\n])~",
    R"~(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-)~"
    R"~(ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮ)~"
    R"~(ⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)~",
    R"~(\s?[!-/:-~！-／：-～‘-‟　-。]+)~",
    R"~(\s+$)~",
    R"~([一-龥ࠀ-一가-퟿]+)~",
    R"~(\p{N})~"};
constexpr std::array<Pattern, 5> deepseek_coder = {R"~([\r\n])~", R"~(\s?\p{L}+)~", R"~(\s?\p{P}+)~",
                                                   R"~([一-龥ࠀ-一가-퟿]+)~", R"~(\p{N})~"};
constexpr std::array<Pattern, 3> deepseek_v3 = {
    R"~(\p{N}{1,3})~", R"~([一-龥぀-ゟ゠-ヿ]+)~",
    R"~([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)~"
    R"~(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)~"};
constexpr std::array<Pattern, 1> bloom = {R"~( ?[^(\s|.,!?…。，、।۔،)]+)~"};
constexpr std::array<Pattern, 2> viking = {R"~( ?[^(\s|.,!?…。，、।۔،)]+)~", R"~(\p{N})~"};
constexpr std::array<Pattern, 1> seed_coder = {
    R"~((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n])~"
    R"~(+|\s*[\r\n]+|\s+(?!\S)|\s+)~"};
constexpr std::array<Pattern, 1> bailing = {
    R"~('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*)~"
    R"~([\r\n]|\s+(?!\S)|\s+)~"};
constexpr std::array<Pattern, 3> falcon = {R"~([\p{P}$+<=>^~|`]+)~", gpt2_pattern, R"~([0-9][0-9][0-9])~"};
constexpr std::array<Pattern, 4> general = {R"~([\p{P}$+<=>^~|]+)~", gpt2_pattern, R"~(\p{N}+)~",
                                            R"~([0-9][0-9][0-9])~"};

constexpr GgufSplit splits[] = {
    {.name = "default", .patterns = general},
    {.name = "gpt-2", .patterns = gpt2},
    {.name = "phi-2", .patterns = gpt2},
    {.name = "jina-es", .patterns = gpt2},
    {.name = "jina-de", .patterns = gpt2},
    {.name = "jina-v2-es", .patterns = gpt2},
    {.name = "jina-v2-de", .patterns = gpt2},
    {.name = "jina-v1-en", .patterns = gpt2},
    {.name = "jina-v2-code", .patterns = gpt2},
    {.name = "roberta-bpe", .patterns = gpt2},
    {.name = "gigachat", .patterns = gpt2},
    {.name = "a.x-4.0", .patterns = gpt2},
    {.name = "mellum", .patterns = gpt2},
    {.name = "modern-bert", .patterns = gpt2},
    {.name = "exaone4", .patterns = gpt2},
    {.name = "jais", .patterns = gpt2},
    {.name = "trillion", .patterns = gpt2},
    {.name = "granite-docling", .patterns = gpt2},
    {.name = "mpt", .patterns = gpt2, .nfc = true},
    {.name = "olmo", .patterns = gpt2, .nfc = true},
    {.name = "llama3", .patterns = llama3, .ignore_merges = true, .add_bos = true},
    {.name = "llama-v3", .patterns = llama3, .ignore_merges = true, .add_bos = true},
    {.name = "llama-bpe", .patterns = llama3, .ignore_merges = true, .add_bos = true},
    {.name = "falcon3", .patterns = llama3, .ignore_merges = true, .add_bos = true},
    {.name = "falcon-h1", .patterns = llama3, .ignore_merges = true, .add_bos = true},
    {.name = "pixtral", .patterns = llama3, .ignore_merges = true, .add_bos = true},
    {.name = "midm-2.0", .patterns = llama3, .ignore_merges = true, .add_bos = true},
    {.name = "lfm2", .patterns = llama3, .ignore_merges = true, .add_bos = true},
    {.name = "dbrx", .patterns = llama3},
    {.name = "smaug-bpe", .patterns = llama3},
    {.name = "chatglm-bpe", .patterns = llama3},
    {.name = "glm4", .patterns = llama3},
    {.name = "qwen2", .patterns = qwen2, .nfc = true},
    {.name = "deepseek-r1-qwen", .patterns = qwen2},
    {.name = "megrez", .patterns = qwen2},
    {.name = "stablelm2", .patterns = qwen2},
    {.name = "hunyuan", .patterns = qwen2},
    {.name = "grok-2", .patterns = qwen2},
    {.name = "solar-open", .patterns = qwen2},
    {.name = "qwen35", .patterns = qwen35, .nfc = true},
    {.name = "gpt-4o", .patterns = o200k, .ignore_merges = true},
    {.name = "llama4", .patterns = o200k, .ignore_merges = true},
    {.name = "kanana2", .patterns = o200k, .ignore_merges = true},
    {.name = "minimax-m2", .patterns = o200k, .ignore_merges = true},
    {.name = "tekken", .patterns = tekken, .ignore_merges = true, .add_bos = true},
    {.name = "starcoder", .patterns = digits_gpt2},
    {.name = "refact", .patterns = digits_gpt2},
    {.name = "command-r", .patterns = digits_gpt2},
    {.name = "smollm", .patterns = digits_gpt2},
    {.name = "codeshell", .patterns = digits_gpt2},
    {.name = "exaone", .patterns = digits_gpt2},
    {.name = "minerva-7b", .patterns = digits_gpt2},
    {.name = "mellum2", .patterns = digits_gpt2},
    {.name = "deepseek-llm", .patterns = deepseek_llm},
    {.name = "deepseek-coder", .patterns = deepseek_coder},
    {.name = "deepseek-v3", .patterns = deepseek_v3},
    {.name = "hunyuan-dense", .patterns = deepseek_v3},
    {.name = "joyai-llm", .patterns = deepseek_v3},
    {.name = "bloom", .patterns = bloom},
    {.name = "poro-chat", .patterns = bloom},
    {.name = "gpt3-finnish", .patterns = bloom},
    {.name = "viking", .patterns = viking},
    {.name = "seed-coder", .patterns = seed_coder},
    {.name = "bailingmoe", .patterns = bailing},
    {.name = "bailingmoe2", .patterns = bailing},
    {.name = "llada-moe", .patterns = bailing},
    {.name = "falcon", .patterns = falcon},
};

}  // namespace

const GgufSplit& find_split(std::string_view name, std::string_view file) {
  const std::string_view wanted = name.empty() ? "default" : name;
  const auto* found = std::ranges::find(splits, wanted, &GgufSplit::name);
  if (found != std::end(splits)) return *found;
  std::vector<std::string_view> known;
  for (const GgufSplit& split : splits) known.push_back(split.name);
  fail(ErrorKind::unsupported, fmt::format("{}: tokenizer.ggml.pre {} is not supported", file, quote(name)),
       {.why = fmt::format("known names: {}", fmt::join(known, ", ")),
        .next = "use the model's tokenizer.json, which contains its split patterns"});
}

const GgufSplit* find_split_by_patterns(std::span<const std::string> patterns, bool nfc, bool ignore_merges) {
  const GgufSplit* found = nullptr;
  for (const GgufSplit& split : splits) {
    if (split.nfc != nfc || !std::ranges::equal(split.patterns, patterns)) continue;
    if (split.ignore_merges == ignore_merges) return &split;
    if (found == nullptr) found = &split;
  }
  return found;
}

namespace {

constexpr std::string_view word_start = "▁";
constexpr std::size_t longest_spm_piece = 256;  // every split of a piece in two is tried
constexpr std::size_t max_text = 256 << 20;     // bytes of all tokens; real vocabularies have about 3 MB

GgufTokenType type_of(const GgufVocabulary& vocabulary, std::size_t index) {
  if (vocabulary.token_types.empty()) return GgufTokenType::normal;
  const std::int32_t type = vocabulary.token_types[index];
  if (type < 1 || type > 6) {
    fail(ErrorKind::corrupt, fmt::format("{}: tokenizer.ggml.token_type[{}] is {}, expected 1 to 6",
                                         vocabulary.file, index, type));
  }
  return static_cast<GgufTokenType>(type);
}

void check_count(const GgufVocabulary& vocabulary, std::size_t count, std::string_view name) {
  if (count == 0 || count == vocabulary.tokens.size()) return;
  fail(ErrorKind::corrupt, fmt::format("{}: tokenizer.ggml.{} has {} entries for {} tokens", vocabulary.file,
                                       name, count, vocabulary.tokens.size()));
}

void check_id(const GgufVocabulary& vocabulary, std::optional<TokenId> id, std::string_view name) {
  if (!id || (*id >= 0 && static_cast<std::size_t>(*id) < vocabulary.tokens.size())) return;
  fail(ErrorKind::corrupt, fmt::format("{}: tokenizer.ggml.{} is {} in a vocabulary of {}", vocabulary.file,
                                       name, *id, vocabulary.tokens.size()));
}

void check(const GgufVocabulary& vocabulary) {
  if (vocabulary.tokens.empty()) {
    fail(ErrorKind::corrupt, fmt::format("{}: tokenizer.ggml.tokens is missing or empty", vocabulary.file));
  }
  std::size_t bytes = 0;
  for (const std::string& token : vocabulary.tokens) bytes += token.size();
  if (bytes > max_text) {
    fail(ErrorKind::unsupported,
         fmt::format("{}: tokens of {} bytes, at most {} are accepted", vocabulary.file, bytes, max_text));
  }
  check_count(vocabulary, vocabulary.scores.size(), "scores");
  check_count(vocabulary, vocabulary.token_types.size(), "token_type");
  const auto bad = std::ranges::find_if(vocabulary.scores, [](float score) { return !std::isfinite(score); });
  if (bad != vocabulary.scores.end()) {
    fail(ErrorKind::corrupt, fmt::format("{}: tokenizer.ggml.scores[{}] is {}", vocabulary.file,
                                         bad - vocabulary.scores.begin(), *bad));
  }
  check_id(vocabulary, vocabulary.bos, "bos_token_id");
  check_id(vocabulary, vocabulary.eos, "eos_token_id");
  check_id(vocabulary, vocabulary.unknown, "unknown_token_id");
}

// Converters pad vocabularies to the size of the embedding with these.
bool is_padding(std::string_view text) {
  if (!text.starts_with("[PAD") || !text.ends_with(']')) return false;
  const std::string_view digits = text.substr(4, text.size() - 5);
  return !digits.empty() && std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<AddedToken> added_tokens(const GgufVocabulary& vocabulary) {
  std::vector<AddedToken> added;
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const std::string& text = vocabulary.tokens[i];
    const GgufTokenType type = type_of(vocabulary, i);
    const auto id = static_cast<TokenId>(i);
    const bool special =
        type == GgufTokenType::control || (type == GgufTokenType::unknown && vocabulary.unknown == id);
    if (text.size() > longest_added_token && (special || type == GgufTokenType::user_defined)) {
      fail(ErrorKind::unsupported, fmt::format("{}: control token {} has {} bytes, at most {} are accepted",
                                               vocabulary.file, i, text.size(), longest_added_token));
    }
    if (text.empty() || is_padding(text) || (!special && type != GgufTokenType::user_defined)) continue;
    added.push_back({.id = id, .content = text, .special = special});
  }
  return added;
}

// Whether merging text may yield this token; control tokens come from templates only.
bool is_ordinary(const GgufVocabulary& vocabulary, std::size_t index) {
  const GgufTokenType type = type_of(vocabulary, index);
  if (type == GgufTokenType::user_defined) return !is_control({.content = vocabulary.tokens[index]});
  return type == GgufTokenType::normal || type == GgufTokenType::byte;
}

// Pieces as the model looks them up. Of duplicate texts the first id counts, as in llama.cpp.
Vocabulary ordinary_pieces(const GgufVocabulary& vocabulary, bool byte_level) {
  Vocabulary pieces(static_cast<int>(vocabulary.tokens.size()), vocabulary.tokens.size());
  std::string bytes;
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    if (!is_ordinary(vocabulary, i)) continue;
    if (byte_level && !byte_alphabet::read(bytes, vocabulary.tokens[i])) continue;
    pieces.add(static_cast<TokenId>(i), byte_level ? bytes : vocabulary.tokens[i]);
  }
  return pieces;
}

MergeTable listed_merges(const GgufVocabulary& vocabulary, const Vocabulary& pieces) {
  MergeTable merges(vocabulary.merges.size());
  MergeLoader loader(pieces, merges);
  std::string left;
  std::string right;
  for (std::size_t rank = 0; rank < vocabulary.merges.size(); ++rank) {
    const std::string_view both = vocabulary.merges[rank];
    // In some files a piece begins with a space; the separator is the first space after it.
    const std::size_t space = both.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == both.size()) {
      fail(ErrorKind::corrupt, fmt::format("{}: tokenizer.ggml.merges[{}]: expected two pieces, found {}",
                                           vocabulary.file, rank, quote(both)));
    }
    const bool readable = byte_alphabet::read(left, both.substr(0, space)) &&
                          byte_alphabet::read(right, both.substr(space + 1));
    if (!readable) continue;  // not in the byte alphabet: can never apply
    loader.add(left, right, static_cast<std::uint32_t>(rank));
  }
  // llama.cpp's converters keep merges whose pieces were renamed; such merges can never apply.
  loader.finish();
  return merges;
}

struct DerivedMerge {
  float score;
  TokenId result;
  TokenId left;
  TokenId right;
};

// sentencepiece has no list of merges: two pieces merge if the result is a piece, best score first. Hugging
// Face converts that to a list in this order.
std::vector<DerivedMerge> derived_merges(const GgufVocabulary& vocabulary, const Vocabulary& pieces) {
  std::vector<DerivedMerge> merges;
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const std::string_view text = vocabulary.tokens[i];
    if (type_of(vocabulary, i) != GgufTokenType::normal) continue;
    if (text.size() > longest_spm_piece) {
      fail(ErrorKind::unsupported, fmt::format("{}: token {} has {} bytes, at most {} are accepted",
                                               vocabulary.file, i, text.size(), longest_spm_piece));
    }
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      if (utf8::is_continuation(text[cut])) continue;
      const TokenId left = pieces.lookup(text.substr(0, cut));
      const TokenId right = left < 0 ? -1 : pieces.lookup(text.substr(cut));
      if (right >= 0)
        merges.push_back(
            {.score = vocabulary.scores[i], .result = static_cast<TokenId>(i), .left = left, .right = right});
    }
  }
  std::ranges::sort(merges, [](const DerivedMerge& a, const DerivedMerge& b) {
    return std::tuple(-a.score, a.result, a.left, a.right) < std::tuple(-b.score, b.result, b.left, b.right);
  });
  return merges;
}

void fill_bytes(TokenizerParts& parts, const GgufVocabulary& vocabulary, const TokenDecoder& decoder) {
  parts.style = decoder.style;
  parts.bytes = TokenTexts(static_cast<int>(vocabulary.tokens.size()));
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    parts.bytes.set(static_cast<TokenId>(i), decoder.bytes_of(vocabulary.tokens[i]));
  }
}

TokenizerParts byte_level_parts(const GgufVocabulary& vocabulary, bool& adds_bos) {
  const GgufSplit& split = find_split(vocabulary.pre, vocabulary.file);
  adds_bos = split.add_bos;
  TokenizerParts parts;
  if (split.nfc) parts.normalizer = Normalizer({normalize::ToForm{UnicodeForm::nfc}});
  std::vector<PreTokenizerStep> steps;
  for (const std::string_view pattern : split.patterns) {
    steps.emplace_back(pretokenize::ByPattern{.pattern = std::make_shared<const Regex>(pattern, split.name)});
  }
  parts.pre_tokenizer = PreTokenizer(std::move(steps));
  Vocabulary pieces = ordinary_pieces(vocabulary, /*byte_level=*/true);
  MergeTable merges = listed_merges(vocabulary, pieces);
  const BpeOptions options{.byte_level = true, .ignore_merges = split.ignore_merges, .unknown = {}};
  parts.model = std::make_unique<Bpe>(std::move(pieces), std::move(merges), options);
  fill_bytes(parts, vocabulary, {.steps = {decode::ReadBytes{}}, .style = {}});
  return parts;
}

TokenizerParts sentencepiece_parts(const GgufVocabulary& vocabulary) {
  if (vocabulary.scores.empty()) {
    fail(ErrorKind::corrupt, fmt::format("{}: tokenizer.ggml.scores is missing", vocabulary.file));
  }
  TokenizerParts parts;
  const bool prefix = vocabulary.add_space_prefix.value_or(true);
  std::vector<NormalizerStep> normalizer;
  if (prefix) normalizer.emplace_back(normalize::Prepend{std::string(word_start)});
  normalizer.emplace_back(normalize::ReplaceText{" ", std::string(word_start)});
  parts.normalizer = Normalizer(std::move(normalizer));

  Vocabulary pieces = ordinary_pieces(vocabulary, /*byte_level=*/false);
  const std::vector<DerivedMerge> derived = derived_merges(vocabulary, pieces);
  MergeTable merges(derived.size());
  bool across_words = false;
  for (std::size_t rank = 0; rank < derived.size(); ++rank) {
    const DerivedMerge& merge = derived[rank];
    merges.add(merge.left, merge.right, merge.result, static_cast<std::uint32_t>(rank));
    across_words = across_words || (pieces.piece(merge.right).starts_with(word_start) &&
                                    !pieces.piece(merge.left).ends_with(word_start));
  }
  const BpeOptions options{.byte_fallback = true, .fuse_unknown = true, .unknown = vocabulary.unknown};
  parts.model = std::make_unique<Bpe>(std::move(pieces), std::move(merges), options,
                                      across_words ? std::string() : std::string(word_start));
  TokenDecoder decoder{.steps = {decode::Replace{std::string(word_start), " "}, decode::ByteFallback{}},
                       .style = {}};
  decoder.style = {.leading_spaces_to_drop = prefix ? 1 : 0, .replacement = utf8::Replacement::per_byte};
  fill_bytes(parts, vocabulary, decoder);
  return parts;
}

// GGUF has one key for the end token; others are known by name. Harmony's <|end|> ends a message, not the
// reply.
std::vector<TokenId> end_tokens(const GgufVocabulary& vocabulary, const std::vector<AddedToken>& added) {
  constexpr std::array<std::string_view, 10> names = {
      "<|eot_id|>",    "<|im_end|>",      "<|return|>",    "<|call|>", "<|eom_id|>",
      "<end_of_turn>", "<|end_of_text|>", "<|endoftext|>", "<EOT>",    "<|end|>"};
  std::vector<TokenId> ends;
  const auto add = [&ends](TokenId id) {
    if (std::ranges::find(ends, id) == ends.end()) ends.push_back(id);
  };
  if (vocabulary.eos) add(*vocabulary.eos);
  for (const TokenId id : vocabulary.other_end_tokens) add(id);
  const auto has = [&added](std::string_view text) {
    return std::ranges::find(added, text, &AddedToken::content) != added.end();
  };
  const bool harmony = has("<|return|>") && has("<|call|>");
  for (const AddedToken& token : added) {
    if (harmony && token.content == "<|end|>") continue;
    if (std::ranges::find(names, token.content) != names.end()) add(token.id);
  }
  return ends;
}

}  // namespace

std::unique_ptr<Tokenizer> make_tokenizer(GgufVocabulary vocabulary) {
  check(vocabulary);
  bool adds_bos = true;
  TokenizerParts parts;
  if (vocabulary.model == "gpt2") {
    parts = byte_level_parts(vocabulary, adds_bos);
  } else if (vocabulary.model == "llama") {
    parts = sentencepiece_parts(vocabulary);
  } else {
    fail(
        ErrorKind::unsupported,
        fmt::format("{}: tokenizer.ggml.model {} is not supported", vocabulary.file, quote(vocabulary.model)),
        {.why = "supported: gpt2 (byte-level BPE) and llama (sentencepiece)", .next = {}});
  }
  parts.added = added_tokens(vocabulary);
  for (const TokenId id : vocabulary.other_end_tokens) check_id(vocabulary, id, "eot_token_id");
  parts.bos = vocabulary.bos;
  parts.end_tokens = end_tokens(vocabulary, parts.added);
  if (vocabulary.add_bos.value_or(adds_bos) && vocabulary.bos) parts.prefix.push_back(*vocabulary.bos);
  if (vocabulary.add_eos.value_or(false) && vocabulary.eos) parts.suffix.push_back(*vocabulary.eos);
  return assemble(std::move(parts));
}

}  // namespace inferno
