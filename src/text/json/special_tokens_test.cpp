// The files next to tokenizer.json.
#include "text/json/special_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "text/tokenizer.h"
#include "text/tokenizer_scene.h"

namespace inferno {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ModelDirectory : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) / "special_tokens" / test->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    write("tokenizer.json", made_up_json({.added_tokens = R"([{"id":300,"content":"<s>","special":true},
        {"id":301,"content":"</s>","special":true},{"id":302,"content":"<|call|>","special":true}])"}));
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  std::unique_ptr<Tokenizer> load() const { return load_tokenizer(folder_); }
  std::filesystem::path folder_;
};

TEST_F(ModelDirectory, NeedsNothingBesideTokenizerJson) {
  const auto tokenizer = load();
  EXPECT_EQ(tokenizer->bos(), std::nullopt);
  EXPECT_THAT(tokenizer->end_tokens(), IsEmpty());
}

TEST_F(ModelDirectory, NamesBeginAndEnd) {
  write("tokenizer_config.json", R"({"bos_token":{"content":"<s>","lstrip":false},"eos_token":"</s>"})");
  const auto tokenizer = load();
  EXPECT_EQ(tokenizer->bos(), 300);
  EXPECT_THAT(tokenizer->end_tokens(), ElementsAre(301));
  EXPECT_THAT(tokenizer->encode_with_special("he"), ElementsAre(256));
}

TEST_F(ModelDirectory, TakesNamesFromTheMapWhenTheConfigHasNone) {
  write("tokenizer_config.json", R"({"bos_token":null})");
  write("special_tokens_map.json", R"({"bos_token":"<s>","eos_token":{"content":"</s>"}})");
  EXPECT_EQ(load()->bos(), 300);
  EXPECT_THAT(load()->end_tokens(), ElementsAre(301));
}

TEST_F(ModelDirectory, CollectsSeveralEndTokensTheMainOneFirst) {
  write("tokenizer_config.json", R"({"eos_token":"</s>"})");
  write("generation_config.json", R"({"eos_token_id":[302,301,999999]})");
  EXPECT_THAT(load()->end_tokens(), ElementsAre(301, 302));
}

TEST_F(ModelDirectory, FallsBackToConfigJsonForTheEnd) {
  write("config.json", R"({"eos_token_id":301})");
  EXPECT_THAT(load()->end_tokens(), ElementsAre(301));
}

TEST_F(ModelDirectory, AddsBeginAndEndWhenToldSoAndNoTemplateDecides) {
  write("tokenizer_config.json",
        R"({"bos_token":"<s>","eos_token":"</s>","add_bos_token":true,"add_eos_token":true})");
  EXPECT_THAT(load()->encode_with_special("he"), ElementsAre(300, 256, 301));
  write("tokenizer.json",
        made_up_json(
            {.post_processor = R"({"type":"TemplateProcessing","single":[{"Sequence":{"id":"A","type_id":0}}],
      "pair":[],"special_tokens":{}})",
             .added_tokens = R"([{"id":300,"content":"<s>","special":true}])"}));
  EXPECT_THAT(load()->encode_with_special("he"), ElementsAre(256));
}

TEST_F(ModelDirectory, TokensThatOnlyTheConfigKnowsAreAdded) {
  write("tokenizer_config.json",
        R"({"eos_token":"hello","added_tokens_decoder":{"303":{"content":"<new>","special":true}}})");
  const auto tokenizer = load();
  EXPECT_THAT(tokenizer->encode_prompt("<new>hello"), ElementsAre(303, 259));
  EXPECT_TRUE(tokenizer->is_special(259));
  EXPECT_THAT(tokenizer->encode("hello"), ElementsAre(258, 'o'));
  EXPECT_THAT(tokenizer->end_tokens(), ElementsAre(259));
}

TEST_F(ModelDirectory, NamesTheFileAndFieldThatAreWrong) {
  write("generation_config.json", R"({"eos_token_id":"two"})");
  try {
    load();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(
        error.what(),
        testing::HasSubstr("generation_config.json: eos_token_id: expected an integer, found a string"));
  }
}

TEST_F(ModelDirectory, SaysWhatIsMissing) {
  std::filesystem::remove(folder_ / "tokenizer.json");
  write("tokenizer.model", "x");
  try {
    load();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::not_found);
    EXPECT_THAT(error.advice().why, testing::HasSubstr("tokenizer.model"));
  }
}

}  // namespace
}  // namespace inferno
