// Components of a tokenizer.json, one scene each; whole vocabularies are compared in tests/text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "text/tokenizer.h"
#include "text/tokenizer_scene.h"

namespace inferno {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::unique_ptr<Tokenizer> make(const MadeUpParts& parts = {}) {
  return parse_tokenizer(made_up_json(parts), "made-up.json");
}

std::string refusal(const MadeUpParts& parts, ErrorKind kind) {
  try {
    make(parts);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  return "accepted";
}

TEST(TokenizerJson, ByteLevelBpeEncodesAndDecodes) {
  const auto tokenizer = make();
  EXPECT_EQ(tokenizer->size(), 261);
  EXPECT_THAT(tokenizer->encode("hello hello he"), ElementsAre(259, 260, ' ', 256));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{259, 260, 0xC3, 0xA9}), "hello helloé");
  EXPECT_EQ(tokenizer->bytes(260), " hello");
  EXPECT_THAT(tokenizer->encode(""), IsEmpty());
}

TEST(TokenizerJson, RecognisesAddedTokensOnlyInTrustedText) {
  const auto tokenizer =
      make({.added_tokens = R"([{"id":300,"content":"<|end|>","special":true,"normalized":false}])"});
  EXPECT_THAT(tokenizer->encode_prompt("he<|end|>"), ElementsAre(256, 300));
  EXPECT_THAT(tokenizer->encode("<|end|>"), ElementsAre('<', '|', 'e', 'n', 'd', '|', '>'));
  EXPECT_EQ(tokenizer->special("<|end|>"), 300);
  EXPECT_EQ(tokenizer->special("he"), std::nullopt);
  EXPECT_TRUE(tokenizer->is_special(300));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{256, 300}), "he<|end|>");
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{256, 300}, SpecialTokens::skip), "he");
}

TEST(TokenizerJson, WordsFormAcrossTheBordersOfSpans) {
  const auto tokenizer =
      make({.added_tokens = R"([{"id":300,"content":"<|end|>","special":true,"normalized":false}])"});
  const std::vector<TextSpan> spans = {
      {"he", Origin::trusted}, {"llo<|end|>", Origin::user}, {"<|end|>", Origin::trusted}};
  EXPECT_THAT(tokenizer->encode_spans(spans), ElementsAre(259, '<', '|', 'e', 'n', 'd', '|', '>', 300));
}

TEST(TokenizerJson, AModelCannotProduceAControlTokenByMergingWhatAUserWrote) {
  const auto tokenizer =
      make({.pre_tokenizer = R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false})",
            .added_tokens = R"([{"id":259,"content":"hello","special":true,"normalized":false}])"});
  EXPECT_THAT(tokenizer->encode("hello"), ElementsAre(258, 'o'));
  EXPECT_THAT(tokenizer->encode_prompt("hello"), ElementsAre(259));
}

TEST(TokenizerJson, PostProcessorsPutTokensAround) {
  const std::string added =
      R"([{"id":300,"content":"<s>","special":true},{"id":301,"content":"</s>","special":true}])";
  const auto single = [&](const std::string& processor) {
    return make({.post_processor = processor, .added_tokens = added})->encode_with_special("he");
  };
  const std::string begin =
      R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],
      "pair":[],"special_tokens":{"<s>":{"id":"<s>","ids":[300],"tokens":["<s>"]}}})";
  EXPECT_THAT(single(begin), ElementsAre(300, 256));
  EXPECT_THAT(single(R"({"type":"BertProcessing","sep":["</s>",301],"cls":["<s>",300]})"),
              ElementsAre(300, 256, 301));
  EXPECT_THAT(
      single(R"({"type":"RobertaProcessing","sep":["</s>",301],"cls":["<s>",300],"trim_offsets":true})"),
      ElementsAre(300, 256, 301));
  EXPECT_THAT(single(R"({"type":"Sequence","processors":[{"type":"ByteLevel"},)" + begin + "]}"),
              ElementsAre(300, 256));
  EXPECT_THAT(single(R"({"type":"ByteLevel"})"), ElementsAre(256));
}

TEST(TokenizerJson, StarcoderSplitsDigitsBeforeWords) {
  const auto tokenizer = make(
      {.pre_tokenizer = R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},
      {"type":"ByteLevel","add_prefix_space":false,"use_regex":true}]})"});
  EXPECT_THAT(tokenizer->encode("hello12"), ElementsAre(259, '1', '2'));
}

TEST(TokenizerJson, PrefixSpaceIsAddedWhereAsked) {
  const auto tokenizer =
      make({.pre_tokenizer = R"({"type":"ByteLevel","add_prefix_space":true,"use_regex":true})"});
  EXPECT_THAT(tokenizer->encode("hello"), ElementsAre(260));
}

const std::string letters = R"({"type":"BPE","unk_token":"<unk>","fuse_unk":true,"byte_fallback":true,
    "vocab":{"<unk>":0,"<0xC3>":1,"<0xA9>":2,"▁":3,"a":4,"b":5,"▁a":6},"merges":["▁ a"]})";
const std::string llama_decoder =
    R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},
    {"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]})";

TEST(TokenizerJson, SentencepieceStyleBpeEncodesAndDecodes) {
  const auto tokenizer =
      make({.normalizer = R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},
                                  {"type":"Replace","pattern":{"String":" "},"content":"▁"}]})",
            .pre_tokenizer = "null",
            .decoder = llama_decoder,
            .model = letters});
  EXPECT_THAT(tokenizer->encode("a béa"), ElementsAre(6, 3, 5, 1, 2, 4));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{6, 3, 5, 1, 2, 4}), "a béa");
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{1, 4, 1, 2}),
            "\xEF\xBF\xBD"
            "aé");
  EXPECT_EQ(tokenizer->decode_style().leading_spaces_to_drop, 1);
}

TEST(TokenizerJson, UnigramWithMetaspaceEncodesAndDecodes) {
  const auto tokenizer = make(
      {.pre_tokenizer = R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true})",
       .decoder = R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true})",
       .added_tokens = R"([{"id":1,"content":"</s>","special":true}])",
       .model =
           R"({"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["</s>",0],["▁",-2],["a",-1],["▁a",-1.5],["b",-3]]})"});
  EXPECT_THAT(tokenizer->encode_prompt("a ab</s>"), ElementsAre(4, 4, 5, 1));
  EXPECT_THAT(tokenizer->encode("</s>"), ElementsAre(2, 0));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{4, 4, 5}), "a ab");
}

TEST(TokenizerJson, WithoutADecoderTokensAreJoinedBySpaces) {
  EXPECT_EQ(make({.decoder = "null"})->decode(std::vector<TokenId>{259, 256}), "hello he");
}

TEST(TokenizerJson, NamesTheComponentItDoesNotHave) {
  EXPECT_THAT(
      refusal({.normalizer = R"({"type":"Precompiled","precompiled_charsmap":""})"}, ErrorKind::unsupported),
      HasSubstr("made-up.json: normalizer: component type \"Precompiled\" is not supported"));
  EXPECT_THAT(refusal({.pre_tokenizer = R"({"type":"Sequence","pretokenizers":[{"type":"UnicodeScripts"}]})"},
                      ErrorKind::unsupported),
              HasSubstr("pre_tokenizer.pretokenizers[0]: component type \"UnicodeScripts\""));
  EXPECT_THAT(refusal({.post_processor = R"({"type":"Sideways"})"}, ErrorKind::unsupported),
              HasSubstr("\"Sideways\""));
  EXPECT_THAT(refusal({.decoder = R"({"type":"WordPiece"})"}, ErrorKind::unsupported),
              HasSubstr("\"WordPiece\""));
  EXPECT_THAT(refusal({.model = R"({"type":"WordLevel","vocab":{}})"}, ErrorKind::unsupported),
              HasSubstr("model type \"WordLevel\""));
}

// An empty pattern matches at every offset, so splitting would never end.
TEST(TokenizerJson, MetaspaceWithoutACharacterIsRefused) {
  for (const char* replacement : {"", "__"}) {
    const std::string meta = std::string(R"({"type":"Metaspace","replacement":")") + replacement + "\"}";
    EXPECT_THAT(refusal({.pre_tokenizer = meta}, ErrorKind::corrupt),
                HasSubstr("pre_tokenizer.replacement: expected one character"));
    EXPECT_THAT(refusal({.decoder = meta}, ErrorKind::corrupt),
                HasSubstr("decoder.replacement: expected one character"));
  }
}

TEST(TokenizerJson, TextThatIsNotUtf8IsRefusedWithTheOffset) {
  try {
    make()->encode("ab\xFF");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_request);
    EXPECT_STREQ(error.what(), "text: expected UTF-8, found byte 0xFF at offset 2");
  }
}

TEST(TokenizerJson, AnIdOutsideTheVocabularyIsRefused) {
  EXPECT_THROW(make()->decode(std::vector<TokenId>{261}), Error);
  EXPECT_THROW(make()->decode(std::vector<TokenId>{-1}), Error);
}

TEST(TokenizerJson, HolesInTheVocabularyAreEmpty) {
  const auto tokenizer = make({.added_tokens = R"([{"id":300,"content":"<x>"}])"});
  EXPECT_EQ(tokenizer->size(), 301);
  EXPECT_EQ(tokenizer->bytes(280), "");
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{280}), "");
}

TEST(TokenizerJson, RowsOfTheModelThatAreNoTokensAreEmpty) {
  const auto tokenizer = make();
  tokenizer->pad_to(300);
  EXPECT_EQ(tokenizer->size(), 261);
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{259, 299, 260}), "hello hello");
  EXPECT_FALSE(tokenizer->is_special(299));
  EXPECT_THROW(tokenizer->decode(std::vector<TokenId>{300}), Error);
}

}  // namespace
}  // namespace inferno
