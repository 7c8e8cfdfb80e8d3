// Streaming, on vocabularies where a token may be any byte.
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "base/utf8.h"
#include "text/tokenizer_scene.h"

namespace inferno {
namespace {

using Ids = std::vector<TokenId>;

std::string stream(const Tokenizer& tokenizer, const Ids& ids, SpecialTokens special = SpecialTokens::keep) {
  Detokenizer detokenizer(tokenizer, special);
  std::string text;
  for (const TokenId id : ids) {
    const std::string piece = detokenizer.push(id);
    EXPECT_EQ(utf8::first_invalid(piece), std::nullopt);
    text += piece;
  }
  return text + detokenizer.finish();
}

TEST(Detokenizer, HoldsACharacterBackUntilItIsComplete) {
  const auto tokenizer = parse_tokenizer(made_up_json(), "made-up");
  Detokenizer detokenizer(*tokenizer);
  EXPECT_EQ(detokenizer.push(259), "hello");
  EXPECT_EQ(detokenizer.push(0xF0), "");
  EXPECT_EQ(detokenizer.push(0x9F), "");
  EXPECT_EQ(detokenizer.push(0x98), "");
  EXPECT_EQ(detokenizer.push(0x80), "😀");
  EXPECT_EQ(detokenizer.finish(), "");
}

TEST(Detokenizer, GivesUpOnACharacterOnlyWhenItCannotBeCompleted) {
  const auto tokenizer = parse_tokenizer(made_up_json(), "made-up");
  Detokenizer detokenizer(*tokenizer);
  EXPECT_EQ(detokenizer.push(0xF0), "");
  EXPECT_EQ(detokenizer.push('a'),
            "\xEF\xBF\xBD"
            "a");
  EXPECT_EQ(detokenizer.push(0xE6), "");
  EXPECT_EQ(detokenizer.finish(), "\xEF\xBF\xBD");
}

// Tokenizers of all styles of decoding, with special tokens and with tokens that are part of a character.
std::vector<std::unique_ptr<Tokenizer>> all_styles() {
  const std::string added =
      R"([{"id":261,"content":"<s>","special":true},{"id":262,"content":"é ","special":false}])";
  const std::string per_byte =
      R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"Ġ"},"content":" "},
      {"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":2,"stop":0}]})";
  const std::string metaspace = R"({"type":"Metaspace","replacement":"Ġ","prepend_scheme":"first"})";
  std::vector<std::unique_ptr<Tokenizer>> tokenizers;
  for (const std::string& decoder :
       {std::string(R"({"type":"ByteLevel"})"), per_byte, metaspace, std::string("null")}) {
    tokenizers.push_back(
        parse_tokenizer(made_up_json({.decoder = decoder, .added_tokens = added}), "made-up"));
  }
  return tokenizers;
}

TEST(Detokenizer, StreamsWhatDecodeGivesForAnyTokens) {
  std::mt19937 random(3);
  for (const auto& tokenizer : all_styles()) {
    for (int round = 0; round < 3000; ++round) {
      Ids ids(random() % 12);
      for (TokenId& id : ids) id = static_cast<TokenId>(random() % 263);
      for (const auto special : {SpecialTokens::keep, SpecialTokens::skip}) {
        ASSERT_EQ(stream(*tokenizer, ids, special), tokenizer->decode(ids, special));
      }
    }
  }
}

TEST(Detokenizer, FollowsATextAsIfItHadWrittenIt) {
  std::mt19937 random(4);
  const std::vector<TokenId> often = {' ', 261, 260, 0xF0, 0x9F, 'a'};
  const auto any = [&] {
    return random() % 2 == 0 ? often[random() % often.size()] : static_cast<TokenId>(random() % 263);
  };
  for (const auto& tokenizer : all_styles()) {
    for (int round = 0; round < 2000; ++round) {
      Ids prompt(random() % 60), answer(4);
      for (Ids* ids : {&prompt, &answer}) std::ranges::generate(*ids, any);
      Detokenizer whole(*tokenizer, SpecialTokens::skip), last(*tokenizer, SpecialTokens::skip);
      for (const TokenId id : prompt) whole.push(id);
      last.follow(prompt);
      for (const TokenId id : answer) ASSERT_EQ(last.push(id), whole.push(id));
      ASSERT_EQ(last.finish(), whole.finish());
    }
  }
}

TEST(Detokenizer, CanBeUsedAgainAfterFinish) {
  const auto tokenizer =
      parse_tokenizer(made_up_json({.decoder = R"({"type":"Metaspace","replacement":"Ġ"})"}), "made-up");
  Detokenizer detokenizer(*tokenizer);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(detokenizer.push(260), "hello");
    EXPECT_EQ(detokenizer.push(260), " hello");
    detokenizer.finish();
  }
}

TEST(Tokenizer, StopsWhenATextHasTooManyTokens) {
  const auto tokenizer = parse_tokenizer(
      made_up_json({.added_tokens = R"([{"id":300,"content":"<|end|>","special":true,"normalized":false}])"}),
      "made-up tokenizer.json");
  const auto count = [&](const std::string& text, std::size_t max_tokens) {
    const TextSpan span{text, Origin::trusted};
    const auto ids = tokenizer->encode_within({&span, 1}, max_tokens);
    return ids ? static_cast<int>(ids->size()) : -1;
  };
  EXPECT_EQ(count("hello hello", 2), 2);
  EXPECT_EQ(count("hello hello", 1), -1);
  EXPECT_EQ(count("<|end|><|end|>", 2), 2);
  EXPECT_EQ(count("<|end|><|end|>", 1), -1);
  EXPECT_EQ(count("", 0), 0);
  EXPECT_EQ(count(std::string(1'000'000, 'x'), 1000), -1);  // one piece, which is not encoded
  EXPECT_EQ(count(std::string(1000, 'x'), 1000), 1000);
}

TEST(Tokenizer, FindsControlTokensInText) {
  const auto tokenizer = parse_tokenizer(
      made_up_json({.added_tokens = R"([{"id":300,"content":"<|end|>","special":true,"normalized":false},)"
                                    R"({"id":301,"content":"  ","special":false,"normalized":false}])"}),
      "made-up tokenizer.json");
  EXPECT_EQ(tokenizer->first_control("a  b<|end|>"), 300);
  EXPECT_EQ(tokenizer->first_control("a  b<|end|"), std::nullopt);
}

}  // namespace
}  // namespace inferno
