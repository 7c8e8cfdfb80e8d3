#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "text/byte_alphabet.h"
#include "text/gguf/tokenizer_gguf.h"

namespace inferno {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Bytes 0..255, then "he", "<|im_end|>" (control), "<tool_call>" and "  " (user defined).
GgufVocabulary byte_level() {
  GgufVocabulary vocabulary{.file = "made-up.gguf", .model = "gpt2", .pre = "gpt-2"};
  for (int byte = 0; byte < 256; ++byte)
    vocabulary.tokens.push_back(byte_alphabet::write(std::string(1, static_cast<char>(byte))));
  vocabulary.token_types.assign(256, 1);
  const auto add = [&](const char* text, GgufTokenType type) {
    vocabulary.tokens.emplace_back(text);
    vocabulary.token_types.push_back(static_cast<std::int32_t>(type));
  };
  add("he", GgufTokenType::normal);
  add("<|im_end|>", GgufTokenType::control);
  add("<tool_call>", GgufTokenType::user_defined);
  add("  ", GgufTokenType::user_defined);
  add("[PAD260]", GgufTokenType::user_defined);
  vocabulary.merges = {"h e"};
  vocabulary.bos = 257;
  vocabulary.eos = 257;
  return vocabulary;
}

// <unk> <s> </s> <0xC3> <0xA9> ▁ a b ▁a ab
GgufVocabulary sentencepiece() {
  return {.file = "made-up.gguf",
          .model = "llama",
          .pre = "default",
          .tokens = {"<unk>", "<s>", "</s>", "<0xC3>", "<0xA9>", "▁", "a", "b", "▁a", "ab"},
          .scores = {0, 0, 0, 0, 0, -3, -4, -5, -1, -2},
          .token_types = {2, 3, 3, 6, 6, 1, 1, 1, 1, 1},
          .bos = 1,
          .eos = 2,
          .unknown = 0};
}

std::string refusal(GgufVocabulary vocabulary, ErrorKind kind) {
  try {
    make_tokenizer(std::move(vocabulary));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return std::string(error.what()) + " / " + error.advice().why;
  }
  return "accepted";
}

TEST(TokenizerGguf, ByteLevelVocabulariesEncodeAndDecode) {
  const auto tokenizer = make_tokenizer(byte_level());
  EXPECT_THAT(tokenizer->encode_prompt("he <|im_end|>"), ElementsAre(256, ' ', 257));
  EXPECT_THAT(tokenizer->encode("<|im_end|>"), testing::SizeIs(10));
  EXPECT_THAT(tokenizer->encode("<tool_call>"), testing::SizeIs(11));
  EXPECT_THAT(tokenizer->encode_prompt("<tool_call>"), ElementsAre(258));
  EXPECT_THAT(tokenizer->encode("a  b"), ElementsAre('a', 259, 'b'));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{256, 0xC3, 0xA9, 257}), "heé<|im_end|>");
  EXPECT_THAT(tokenizer->end_tokens(), ElementsAre(257));
}

TEST(TokenizerGguf, PaddingIsNoToken) {
  EXPECT_THAT(make_tokenizer(byte_level())->encode_prompt("[PAD260]"), testing::SizeIs(8));
}

TEST(TokenizerGguf, AddsBeginByTheFlagOrTheHabitOfTheFamily) {
  EXPECT_THAT(make_tokenizer(byte_level())->encode_with_special("he"), ElementsAre(256));
  auto llama3 = byte_level();
  llama3.pre = "llama-bpe";
  EXPECT_THAT(make_tokenizer(llama3)->encode_with_special("he"), ElementsAre(257, 256));
  llama3.add_bos = false;
  llama3.add_eos = true;
  EXPECT_THAT(make_tokenizer(llama3)->encode_with_special("he"), ElementsAre(256, 257));
  EXPECT_THAT(make_tokenizer(sentencepiece())->encode_with_special("a"), ElementsAre(1, 8));
}

TEST(TokenizerGguf, SentencepieceVocabulariesMergeByScore) {
  const auto tokenizer = make_tokenizer(sentencepiece());
  EXPECT_THAT(tokenizer->encode("ab"), ElementsAre(8, 7));  // ▁a (-1) before ab (-2)
  EXPECT_THAT(tokenizer->encode("bab é!"), ElementsAre(5, 7, 9, 5, 3, 4, 0));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{8, 7, 5, 3, 4}), "ab é");
  auto no_prefix = sentencepiece();
  no_prefix.add_space_prefix = false;
  EXPECT_THAT(make_tokenizer(no_prefix)->encode("ab"), ElementsAre(9));
}

TEST(TokenizerGguf, HarmonyGoesOnBehindItsEndToken) {
  auto vocabulary = byte_level();
  for (const char* text : {"<|end|>", "<|return|>", "<|call|>"}) {
    vocabulary.tokens.emplace_back(text);
    vocabulary.token_types.push_back(3);
  }
  vocabulary.eos = 262;
  EXPECT_THAT(make_tokenizer(vocabulary)->end_tokens(), ElementsAre(262, 257, 263));
}

TEST(TokenizerGguf, AnUnknownWayToSplitListsTheKnownOnes) {
  auto vocabulary = byte_level();
  vocabulary.pre = "kimi-k2";
  EXPECT_THAT(refusal(vocabulary, ErrorKind::unsupported),
              testing::AllOf(HasSubstr("made-up.gguf: tokenizer.ggml.pre \"kimi-k2\""),
                             HasSubstr("llama-bpe, "), HasSubstr("qwen2")));
  vocabulary.model = "rwkv";
  EXPECT_THAT(refusal(vocabulary, ErrorKind::unsupported), HasSubstr("tokenizer.ggml.model \"rwkv\""));
}

TEST(TokenizerGguf, ContradictionsAreNamed) {
  const auto with = [](auto change) {
    auto vocabulary = byte_level();
    change(vocabulary);
    return refusal(vocabulary, ErrorKind::corrupt);
  };
  EXPECT_THAT(with([](auto& v) { v.tokens.clear(); }), HasSubstr("tokens is missing"));
  EXPECT_THAT(with([](auto& v) { v.token_types.pop_back(); }),
              HasSubstr("token_type has 260 entries for 261 tokens"));
  EXPECT_THAT(with([](auto& v) { v.token_types[3] = 9; }), HasSubstr("token_type[3] is 9"));
  EXPECT_THAT(with([](auto& v) { v.bos = 261; }), HasSubstr("bos_token_id is 261 in a vocabulary of 261"));
  EXPECT_THAT(with([](auto& v) { v.eos = -1; }), HasSubstr("eos_token_id"));
  EXPECT_THAT(with([](auto& v) { v.other_end_tokens = {5000}; }), HasSubstr("5000"));
  EXPECT_THAT(with([](auto& v) { v.merges = {"he"}; }),
              HasSubstr("merges[0]: expected two pieces, found \"he\""));
  EXPECT_THAT(with([](auto& v) { v.scores.assign(261, std::numeric_limits<float>::quiet_NaN()); }),
              HasSubstr("scores[0]"));
  auto no_scores = sentencepiece();
  no_scores.scores.clear();
  EXPECT_THAT(refusal(no_scores, ErrorKind::corrupt), HasSubstr("scores is missing"));
}

}  // namespace
}  // namespace inferno
