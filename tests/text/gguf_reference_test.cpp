// GGUF vocabularies against the ids of Hugging Face's tokenizers of the same models.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "service/loading/model_files.h"
#include "text/reference.h"

namespace inferno {
namespace {

struct Pair {
  std::string vectors;    // NAME.inp and NAME.out in gguf-vocab
  std::string tokenizer;  // below the reference folder
};

class GgufReference : public testing::TestWithParam<Pair> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(reference_folder() / "gguf-vocab")) {
      GTEST_SKIP() << "no reference data at " << reference_folder();
    }
    tokenizer_ = ModelFiles(reference_folder() / GetParam().tokenizer).tokenizer();
  }
  std::string file(const std::string& ending) const {
    std::ifstream stream(reference_folder() / "gguf-vocab" / (GetParam().vectors + ending), std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_P(GgufReference, GivesTheSameIds) {
  const std::string marker = "\n__ggml_vocab_test__\n";
  std::string texts = file(".inp") + marker;
  std::istringstream lines(file(".out"));
  int cases = 0;
  for (std::string line; std::getline(lines, line); ++cases) {
    const std::size_t end = texts.find(marker);
    ASSERT_NE(end, std::string::npos);
    const std::string text = texts.substr(0, end);
    texts.erase(0, end + marker.size());
    std::istringstream numbers(line);
    const std::vector<TokenId> expected{std::istream_iterator<TokenId>(numbers), {}};
    EXPECT_EQ(tokenizer_->encode_prompt(text), expected) << testing::PrintToString(text);
    EXPECT_EQ(tokenizer_->decode(expected), text);
  }
  EXPECT_GE(cases, 46);
}

INSTANTIATE_TEST_SUITE_P(
    Vocabularies, GgufReference,
    testing::Values(Pair{"ggml-vocab-deepseek-coder.gguf", "gguf-vocab/ggml-vocab-deepseek-coder.gguf"},
                    Pair{"ggml-vocab-deepseek-llm.gguf", "gguf-vocab/ggml-vocab-deepseek-llm.gguf"},
                    Pair{"ggml-vocab-gpt-2.gguf", "gguf-vocab/ggml-vocab-gpt-2.gguf"},
                    Pair{"ggml-vocab-llama-spm.gguf", "gguf-vocab/ggml-vocab-llama-spm.gguf"},
                    Pair{"ggml-vocab-phi-3.gguf", "gguf-vocab/ggml-vocab-phi-3.gguf"},
                    Pair{"ggml-vocab-refact.gguf", "gguf-vocab/ggml-vocab-refact.gguf"},
                    Pair{"ggml-vocab-starcoder.gguf", "gguf-vocab/ggml-vocab-starcoder.gguf"},
                    Pair{"ggml-vocab-llama-bpe.gguf", "tokenizers/llama3"},
                    Pair{"ggml-vocab-qwen2.gguf", "tokenizers/qwen2.5"}),
    [](const auto& scene) {
      std::string name = scene.param.vectors.substr(11, scene.param.vectors.size() - 16);
      std::erase(name, '-');
      return name;
    });

// GGUF and tokenizer.json of the same vocabulary, on the 293 reference texts of other vocabularies.
TEST(GgufAgainstJson, TheTinyModelsAgreeInBothForms) {
  const auto folder = reference_folder();
  if (!std::filesystem::exists(folder / "gguf")) GTEST_SKIP() << "no reference data at " << folder;
  const auto from_gguf = ModelFiles(folder / "gguf" / "gpt2-F16.gguf").tokenizer();
  const auto from_json = ModelFiles(folder / "models" / "gpt2").tokenizer();
  ASSERT_EQ(from_gguf->size(), from_json->size());
  for (TokenId id = 0; id < from_json->size(); ++id) EXPECT_EQ(from_gguf->bytes(id), from_json->bytes(id));
  for (const std::string text : {"Hello  world", "été \n\n 123", "<|endoftext|>x", "日本語 🦙"}) {
    EXPECT_EQ(from_gguf->encode_with_special(text), from_json->encode_with_special(text));
    EXPECT_EQ(from_gguf->encode(text), from_json->encode(text));
  }
  EXPECT_EQ(from_gguf->bos(), from_json->bos());
}

}  // namespace
}  // namespace inferno
