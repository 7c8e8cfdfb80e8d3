#include "text/gguf_patterns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"

namespace inferno {
namespace {

using Pattern = std::string_view;

// Each list is what the pre_tokenizer of the model's tokenizer.json splits by.
constexpr Pattern gpt2_words =
    R"~('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)~";
constexpr std::array<Pattern, 1> gpt2 = {gpt2_words};
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
constexpr std::array<Pattern, 2> digits_gpt2 = {R"~(\p{N})~", gpt2_words};
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
constexpr std::array<Pattern, 3> falcon = {R"~([\p{P}$+<=>^~|`]+)~", gpt2_words, R"~([0-9][0-9][0-9])~"};
constexpr std::array<Pattern, 4> general = {R"~([\p{P}$+<=>^~|]+)~", gpt2_words, R"~(\p{N}+)~",
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
       {.why = fmt::format("known are {}", fmt::join(known, ", ")),
        .next = "use the model's tokenizer.json, which says itself how to split"});
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

}  // namespace inferno
