// Real vocabularies as tokenizer.json and as GGUF: the same ids for the same texts.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "service/loading/gguf_keys.h"
#include "service/loading/model_files.h"
#include "support/paths.h"
#include "support/temporary_directory.h"
#include "text/gguf/export_vocabulary.h"

namespace inferno::testing {
namespace {

using Ids = std::vector<TokenId>;

class ExportedVocabularies : public ::testing::TestWithParam<std::string> {};

TEST_P(ExportedVocabularies, GiveTheIdsOfTheReference) {
  const auto reference = shared_reference();
  if (!reference) GTEST_SKIP() << "no ../shared/reference";
  const std::filesystem::path model = *reference / "tokenizers" / GetParam();
  const auto original = load_tokenizer(model);
  const ExportedVocabulary exported = export_vocabulary(model, original->size() + 7);
  const TemporaryDirectory scratch;
  OutgoingGguf file = {.keys = {{"general.architecture", std::string("llama")}}, .tensors = {}};
  const GgufKeys keys = vocabulary_keys(exported.vocabulary);
  file.keys.insert(file.keys.end(), keys.begin(), keys.end());
  write_gguf(scratch.path() / "vocabulary.gguf", file);
  const auto copy = ModelFiles(scratch.path() / "vocabulary.gguf").tokenizer();

  EXPECT_EQ(copy->size(), original->size() + 7);
  if (original->bos()) {
    EXPECT_EQ(copy->bos(), original->bos());
  }
  std::ifstream stream(*reference / "tokens" / (GetParam() + ".json"));
  const nlohmann::json rows = nlohmann::json::parse(stream);
  ASSERT_EQ(rows.size(), 293u);
  for (const auto& row : rows) {
    const auto text = row["text"].get<std::string>();
    EXPECT_EQ(copy->encode_prompt(text), row["ids"].get<Ids>()) << row["text"];
    EXPECT_EQ(copy->encode_with_special(text), original->encode_with_special(text)) << row["text"];
    EXPECT_EQ(copy->encode(text), original->encode(text)) << row["text"];
    EXPECT_EQ(copy->decode(row["ids"].get<Ids>()), original->decode(row["ids"].get<Ids>()));
  }
}

INSTANTIATE_TEST_SUITE_P(Convert, ExportedVocabularies,
                         ::testing::Values("gpt-oss", "gpt2", "llama3", "phi-2", "phi-3", "qwen2.5", "qwen3"),
                         [](const auto& scene) {
                           std::string name = scene.param;
                           std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
                           return name;
                         });

}  // namespace
}  // namespace inferno::testing
