// Our ids and texts against those of Hugging Face's tokenizers: 7 vocabularies, 293 texts each.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "text/reference.h"
#include "text/tokenizer.h"

namespace inferno {
namespace {

using Ids = std::vector<TokenId>;

class TokenReference : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto folder = reference_folder();
    if (!std::filesystem::exists(folder / "tokens")) GTEST_SKIP() << "no reference data at " << folder;
    std::ifstream file(folder / "tokens" / (GetParam() + ".json"));
    rows_ = nlohmann::json::parse(file);
    ASSERT_EQ(rows_.size(), 293U);
    tokenizer_ = load_tokenizer(folder / "tokenizers" / GetParam());
  }
  nlohmann::json rows_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_P(TokenReference, GivesTheSameIds) {
  for (const auto& row : rows_) {
    EXPECT_EQ(tokenizer_->encode_prompt(row["text"].get<std::string>()), row["ids"].get<Ids>())
        << row["text"];
  }
}

TEST_P(TokenReference, AddsTheSameSpecialTokens) {
  for (const auto& row : rows_) {
    const auto& expected = row["with_special"].is_null() ? row["ids"] : row["with_special"];
    EXPECT_EQ(tokenizer_->encode_with_special(row["text"].get<std::string>()), expected.get<Ids>())
        << row["text"];
  }
}

TEST_P(TokenReference, DecodesToTheSameText) {
  for (const auto& row : rows_) {
    const auto& expected = row["decoded"].is_null() ? row["text"] : row["decoded"];
    EXPECT_EQ(tokenizer_->decode(row["ids"].get<Ids>()), expected.get<std::string>());
  }
}

TEST_P(TokenReference, StreamsTheSameText) {
  for (const auto& row : rows_) {
    Detokenizer stream(*tokenizer_);
    std::string text;
    for (const TokenId id : row["ids"].get<Ids>()) text += stream.push(id);
    text += stream.finish();
    EXPECT_EQ(text, tokenizer_->decode(row["ids"].get<Ids>()));
  }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, TokenReference,
                         testing::Values("gpt-oss", "gpt2", "llama3", "phi-2", "phi-3", "qwen2.5", "qwen3"),
                         [](const auto& scene) {
                           std::string name = scene.param;
                           std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
                           return name;
                         });

}  // namespace
}  // namespace inferno
