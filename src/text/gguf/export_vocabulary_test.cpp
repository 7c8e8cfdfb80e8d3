#include "text/gguf/export_vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <fstream>

#include "base/error.h"
#include "text/gguf/tokenizer_gguf.h"
#include "text/tokenizer.h"
#include "text/tokenizer_scene.h"

namespace inferno {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

namespace fs = std::filesystem;

class ExportVocabulary : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt_name();
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  static std::string fmt_name() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    return std::string("inferno-export-") + test->name() + "-" + std::to_string(::getpid());
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  std::string refusal(int size, ErrorKind kind) const {
    try {
      export_vocabulary(folder_, size);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind);
      return error.what();
    }
    return "accepted";
  }
  fs::path folder_;
};

constexpr const char* one_special = R"([{"id":261,"content":"<|end|>","special":true,"normalized":false},)"
                                    R"({"id":262,"content":"<note>","special":false,"normalized":false}])";

MadeUpParts byte_level_parts() {
  MadeUpParts parts;
  parts.added_tokens = one_special;
  return parts;
}

TEST_F(ExportVocabulary, NamesTheSplitAndTheKindsOfTokens) {
  write("tokenizer.json", made_up_json(byte_level_parts()));
  write("tokenizer_config.json", R"({"eos_token":"<|end|>"})");
  const ExportedVocabulary out = export_vocabulary(folder_, 265);
  EXPECT_EQ(out.vocabulary.model, "gpt2");
  EXPECT_EQ(out.vocabulary.pre, "gpt-2");
  ASSERT_EQ(out.vocabulary.tokens.size(), 265u);
  EXPECT_EQ(out.vocabulary.tokens[260], "Ġhello");
  EXPECT_EQ(out.vocabulary.tokens[261], "<|end|>");
  EXPECT_EQ(out.vocabulary.tokens[264], "[PAD264]");
  EXPECT_THAT(std::vector(out.vocabulary.token_types.begin() + 260, out.vocabulary.token_types.end()),
              ElementsAre(1, 3, 4, 5, 5));
  EXPECT_THAT(out.vocabulary.merges, ElementsAre("h e", "l l", "he ll", "hell o", "Ġ hello"));
  EXPECT_EQ(out.vocabulary.eos, 261);
  EXPECT_EQ(out.vocabulary.add_bos, false);
  EXPECT_THAT(out.notes, testing::IsEmpty());
  const auto tokenizer = make_tokenizer(out.vocabulary);
  EXPECT_THAT(tokenizer->encode_prompt(" hello<|end|>"), ElementsAre(260, 261));
}

TEST_F(ExportVocabulary, SaysThatBosIsAdded) {
  MadeUpParts parts = byte_level_parts();
  parts.post_processor =
      R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<|end|>","type_id":0}},)"
      R"({"Sequence":{"id":"A","type_id":0}}],"pair":[],)"
      R"("special_tokens":{"<|end|>":{"id":"<|end|>","ids":[261],"tokens":["<|end|>"]}}})";
  write("tokenizer.json", made_up_json(parts));
  const ExportedVocabulary out = export_vocabulary(folder_, 263);
  EXPECT_EQ(out.vocabulary.bos, 261);
  EXPECT_EQ(out.vocabulary.add_bos, true);
  EXPECT_EQ(out.vocabulary.add_eos, false);
}

TEST_F(ExportVocabulary, RefusesAPatternThatNoNameStandsFor) {
  MadeUpParts parts = byte_level_parts();
  parts.pre_tokenizer =
      R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"[aeiou]+"},)"
      R"("behavior":"Isolated","invert":false},)"
      R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]})";
  write("tokenizer.json", made_up_json(parts));
  EXPECT_THAT(refusal(263, ErrorKind::unsupported), HasSubstr("[aeiou]+"));
}

TEST_F(ExportVocabulary, RefusesMoreTokensThanTheModelHas) {
  write("tokenizer.json", made_up_json(byte_level_parts()));
  EXPECT_THAT(refusal(262, ErrorKind::corrupt), HasSubstr("263 tokens for a model that has 262"));
}

// <unk> <s> a b ▁ ▁a ab, with byte fallback, as sentencepiece models are converted.
constexpr const char* sentencepiece_model =
    R"({"type":"BPE","unk_token":"<unk>","byte_fallback":true,"fuse_unk":true,)"
    R"("vocab":{"<unk>":0,"<s>":1,"<0x41>":2,"▁":3,"a":4,"b":5,"ab":6,"▁a":7},)"
    R"("merges":[["a","b"],["▁","a"]]})";

TEST_F(ExportVocabulary, GivesSentencepiecesTheOrderOfTheirMergesAsScores) {
  write(
      "tokenizer.json",
      made_up_json({.normalizer = R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},)"
                                  R"({"type":"Replace","pattern":{"String":" "},"content":"▁"}]})",
                    .pre_tokenizer = "null",
                    .decoder = R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},)"
                               R"("content":" "},{"type":"ByteFallback"},{"type":"Fuse"},)"
                               R"({"type":"Strip","content":" ","start":1,"stop":0}]})",
                    .added_tokens = R"([{"id":0,"content":"<unk>","special":true,"normalized":false},)"
                                    R"({"id":1,"content":"<s>","special":true,"normalized":false}])",
                    .model = sentencepiece_model}));
  const ExportedVocabulary out = export_vocabulary(folder_, 8);
  EXPECT_EQ(out.vocabulary.model, "llama");
  EXPECT_THAT(out.vocabulary.token_types, ElementsAre(2, 3, 6, 1, 1, 1, 1, 1));
  EXPECT_EQ(out.vocabulary.add_space_prefix, true);
  EXPECT_GT(out.vocabulary.scores[6], out.vocabulary.scores[7]);
  EXPECT_GT(out.vocabulary.scores[7], out.vocabulary.scores[3]);
  EXPECT_THAT(make_tokenizer(out.vocabulary)->encode("ab a"), ElementsAre(3, 6, 7));
}

}  // namespace
}  // namespace inferno
