#include "service/loading/model_files.h"

#include <gtest/gtest.h>

#include <fstream>

#include "checkpoint/gguf/reader.h"
#include "service/loading/gguf_keys.h"
#include "support/source_dir.h"
#include "support/temporary_directory.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

const fs::path models = fs::path(INFERNO_TEST_DATA) / "models";

TEST(ModelFiles, ReadsAFolder) {
  const ModelFiles files(models / "llama");
  EXPECT_TRUE(files.has_tokenizer());
  EXPECT_GT(files.tokenizer()->size(), 0);
  EXPECT_EQ(files.checkpoint()->container(), Container::safetensors);
}

TEST(ModelFiles, TakesATokenizerAlone) {
  const ModelFiles files(models / "llama" / "tokenizer.json");
  EXPECT_TRUE(files.has_tokenizer());
  EXPECT_EQ(files.tokenizer()->size(), ModelFiles(models / "llama").tokenizer()->size());
}

// A second parse of the header would fail: its magic number is overwritten after the first.
TEST(ModelFiles, ParsesAGgufHeaderOnce) {
  const TemporaryDirectory folder;
  const fs::path file = folder.path() / "model.gguf";
  fs::copy_file(fs::path(INFERNO_TEST_DATA) / "gguf/llama-Q4_K_M.gguf", file);
  fs::permissions(file, fs::perms::owner_write, fs::perm_options::add);
  for (const fs::path& path : {file, folder.path()}) {
    const ModelFiles files(path);
    std::fstream(file, std::ios::binary | std::ios::in | std::ios::out) << "XXXX";
    EXPECT_THROW(read_gguf_metadata(file), Error);
    const auto tokenizer = files.tokenizer();
    EXPECT_GT(tokenizer->size(), 0);
    files.chat_format(*tokenizer);
    const auto checkpoint = files.checkpoint();
    EXPECT_EQ(checkpoint->architecture(), "llama");
    EXPECT_FALSE(checkpoint->names().empty());
    std::fstream(file, std::ios::binary | std::ios::in | std::ios::out) << "GGUF";
  }
}

TEST(ModelFiles, ReadsTheVocabularyOfTheFirstGgufThatIsALanguageModel) {
  const TemporaryDirectory folder;
  std::ofstream(folder.path() / "mmproj-model.gguf") << "not a language model";
  fs::copy_file(fs::path(INFERNO_TEST_DATA) / "gguf/llama-Q4_K_M.gguf", folder.path() / "model.gguf");
  EXPECT_GT(ModelFiles(folder.path()).tokenizer()->size(), 0);
}

TEST(ModelFiles, ReadsTheSamplingSettingsThatConvertWrites) {
  const GenerationConfig written = {.eos = {},
                                    .bos = {},
                                    .pad = {},
                                    .temperature = 0.5f,
                                    .top_k = 20,
                                    .top_p = 0.75f,
                                    .repetition_penalty = 1.25f};
  const TemporaryDirectory folder;
  write_gguf(folder.path() / "model.gguf", {.keys = generation_keys(written, {}), .tensors = {}});
  for (const fs::path& path : {folder.path() / "model.gguf", folder.path()}) {
    const GenerationConfig read = ModelFiles(path).generation_config();
    EXPECT_EQ(read.temperature, written.temperature);
    EXPECT_EQ(read.top_k, written.top_k);
    EXPECT_EQ(read.top_p, written.top_p);
    EXPECT_EQ(read.repetition_penalty, written.repetition_penalty);
  }
  std::ofstream(folder.path() / "generation_config.json") << R"({"temperature": 1.5})";
  EXPECT_EQ(ModelFiles(folder.path()).generation_config().temperature, 1.5f);
}

TEST(ModelFiles, HasNoTokenizerWithoutFiles) {
  const TemporaryDirectory folder;
  EXPECT_FALSE(ModelFiles(folder.path()).has_tokenizer());
  EXPECT_FALSE(ModelFiles(folder.path() / "absent").has_tokenizer());
  EXPECT_THROW(ModelFiles(folder.path()).chat_template(false), Error);
}

}  // namespace
}  // namespace inferno
