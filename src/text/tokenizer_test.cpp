// Streaming, on vocabularies where a token may be any byte.
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <random>

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

TEST(Detokenizer, StreamsWhatDecodeGivesForAnyTokens) {
  const std::string added =
      R"([{"id":261,"content":"<s>","special":true},{"id":262,"content":"é ","special":false}])";
  const std::string per_byte =
      R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"Ġ"},"content":" "},
      {"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":2,"stop":0}]})";
  const std::string metaspace = R"({"type":"Metaspace","replacement":"Ġ","prepend_scheme":"first"})";
  std::mt19937 random(3);
  for (const std::string& decoder :
       {std::string(R"({"type":"ByteLevel"})"), per_byte, metaspace, std::string("null")}) {
    const auto tokenizer =
        parse_tokenizer(made_up_json({.decoder = decoder, .added_tokens = added}), "made-up");
    for (int round = 0; round < 3000; ++round) {
      Ids ids(random() % 12);
      for (TokenId& id : ids) id = static_cast<TokenId>(random() % 263);
      for (const auto special : {SpecialTokens::keep, SpecialTokens::skip}) {
        ASSERT_EQ(stream(*tokenizer, ids, special), tokenizer->decode(ids, special));
      }
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

}  // namespace
}  // namespace inferno
