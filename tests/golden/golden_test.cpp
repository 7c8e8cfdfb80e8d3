// Every family and every weight format against logits of the reference implementation.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "checkpoint/open_checkpoint.h"
#include "golden/agreement.h"
#include "golden/gguf_copy.h"
#include "model/architecture.h"
#include "support/model_backend.h"
#include "support/paths.h"
#include "support/temporary_directory.h"

namespace inferno::testing {
namespace {

namespace fs = std::filesystem;

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  if (name.ends_with(".gguf")) name.resize(name.size() - 5);
  std::replace_if(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

class LocalModel : public ::testing::TestWithParam<std::string> {};

TEST_P(LocalModel, AgreesWithTheReference) {
  const fs::path path = data_folder() / "models" / GetParam();
  expect_agreement({GetParam(), path, path / "golden.safetensors", model_backend().float_weights});
}
INSTANTIATE_TEST_SUITE_P(Golden, LocalModel, ::testing::ValuesIn(names_in(data_folder() / "models")),
                         test_name);

std::vector<std::string> local_gguf_files() {
  std::vector<std::string> names = names_in(data_folder() / "gguf");
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(".gguf"); });
  return names;
}

void expect_gguf_agreement(const fs::path& folder, const std::string& name) {
  const fs::path path = folder / name;
  fs::path golden = path;
  expect_agreement(
      {name, path, golden.replace_extension(".golden.safetensors"), model_backend().quantized_weights});
}

class LocalGguf : public ::testing::TestWithParam<std::string> {};

TEST_P(LocalGguf, AgreesWithTheReference) {
  expect_gguf_agreement(data_folder() / "gguf", GetParam());
}
INSTANTIATE_TEST_SUITE_P(Golden, LocalGguf, ::testing::ValuesIn(local_gguf_files()), test_name);

class Variant : public ::testing::TestWithParam<std::string> {};

TEST_P(Variant, AgreesWithTheReference) {
  const fs::path path = data_folder() / "variants" / GetParam();
  expect_agreement({GetParam(), path, path / "golden.safetensors", model_backend().float_weights});
}
INSTANTIATE_TEST_SUITE_P(Golden, Variant, ::testing::ValuesIn(names_in(data_folder() / "variants")),
                         test_name);

TEST(Families, AllHaveGoldenFiles) {
  std::set<std::string> covered;
  for (const char* folder : {"models", "variants"}) {
    for (const std::string& name : names_in(data_folder() / folder)) {
      covered.insert(std::string(open_checkpoint(data_folder() / folder / name)->architecture()));
    }
  }
  for (const Architecture& arch : architectures()) {
    for (const std::string_view type : arch.hf_types) {
      EXPECT_TRUE(covered.contains(std::string(type))) << type << " has no model in tests/data";
    }
  }
}

void expect_twin_agreement(const fs::path& path, const GgufCopyOptions& options) {
  const std::string name = path.filename().string();
  const TemporaryDirectory scratch;
  const fs::path copy = write_gguf_copy(*open_checkpoint(path), scratch.path(), options);
  expect_agreement({name + " as GGUF", copy, path / "golden.safetensors", model_backend().float_weights});
}

class GgufCopy : public ::testing::TestWithParam<std::string> {};

TEST_P(GgufCopy, AgreesWithTheOriginal) {
  expect_twin_agreement(data_folder() / GetParam(), {});
}
INSTANTIATE_TEST_SUITE_P(Golden, GgufCopy,
                         ::testing::Values("models/llama", "models/mistral", "models/mixtral", "models/qwen3",
                                           "models/phi", "models/phi3", "variants/granite_bias",
                                           "variants/qwen2_plain", "variants/granitemoe_untied",
                                           "variants/llama_biases", "variants/phi_grouped"),
                         test_name);

class SharedGgufCopy : public ::testing::TestWithParam<std::string> {};

TEST_P(SharedGgufCopy, AgreesWithTheOriginal) {
  const auto reference = shared_reference();
  if (!reference) GTEST_SKIP() << "no ../shared/reference";
  expect_twin_agreement(*reference / "models" / GetParam(), {});
}
INSTANTIATE_TEST_SUITE_P(Golden, SharedGgufCopy,
                         ::testing::Values("qwen2", "qwen3_moe", "granite", "granitemoe"), test_name);

TEST(GgufCopyFile, OfVersion2Agrees) {
  expect_twin_agreement(data_folder() / "models" / "llama", {.version = 2});
}
TEST(GgufCopyFile, SplitInThreeAgrees) {
  expect_twin_agreement(data_folder() / "models" / "qwen3", {.files = 3});
}

class SharedModel : public ::testing::TestWithParam<std::string> {};

TEST_P(SharedModel, AgreesWithTheReference) {
  const auto reference = shared_reference();
  if (!reference) GTEST_SKIP() << "no ../shared/reference";
  const fs::path path = *reference / "models" / GetParam();
  expect_agreement({GetParam(), path, path / "golden.safetensors", model_backend().float_weights});
}
INSTANTIATE_TEST_SUITE_P(Golden, SharedModel,
                         ::testing::Values("gpt2", "gpt_oss", "gpt_oss_bf16", "granite", "granitemoe",
                                           "llama", "mistral", "mixtral", "phi", "phi3", "qwen2", "qwen3",
                                           "qwen3_moe", "tinyllama"),
                         test_name);

class SharedGguf : public ::testing::TestWithParam<std::string> {};

TEST_P(SharedGguf, AgreesWithTheReference) {
  const auto reference = shared_reference();
  if (!reference) GTEST_SKIP() << "no ../shared/reference";
  expect_gguf_agreement(*reference / "gguf", GetParam());
}
INSTANTIATE_TEST_SUITE_P(Golden, SharedGguf,
                         ::testing::Values("gpt-oss-MXFP4_MOE.gguf", "gpt2-F16.gguf", "gpt2-Q5_K_M.gguf",
                                           "llama-BF16.gguf", "llama-F16.gguf", "llama-IQ3_S.gguf",
                                           "llama-IQ4_NL.gguf", "llama-IQ4_XS.gguf", "llama-Q2_K.gguf",
                                           "llama-Q3_K_M.gguf", "llama-Q4_0.gguf", "llama-Q4_1.gguf",
                                           "llama-Q4_K_M.gguf", "llama-Q5_0.gguf", "llama-Q5_1.gguf",
                                           "llama-Q5_K_M.gguf", "llama-Q6_K.gguf", "llama-Q8_0.gguf",
                                           "llama-TQ2_0.gguf", "qwen2-Q4_K_M.gguf", "qwen2-Q8_0.gguf"),
                         test_name);

}  // namespace
}  // namespace inferno::testing
