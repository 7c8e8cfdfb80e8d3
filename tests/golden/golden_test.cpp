// Every family and every weight format against logits of the reference implementation.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "model/load.h"
#include "model/runner.h"
#include "support/golden.h"
#include "support/paths.h"
#include "tolerance.h"

namespace inferno::testing {
namespace {

namespace fs = std::filesystem;

struct Model {
  std::string name;
  fs::path path, golden;
  double tolerance;
};

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

TokenId best(const std::vector<float>& logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

std::vector<TokenId> generate(Runner& runner, const std::vector<TokenId>& prompt, std::size_t count) {
  std::vector<TokenId> out;
  std::vector<float> logits = runner.feed(prompt, 1);
  while (out.size() < count) {
    out.push_back(best(logits));
    if (out.size() < count) logits = runner.feed(std::span(&out.back(), 1), 1);
  }
  return out;
}

void expect_agreement(const Model& model) {
  const auto cases = read_golden(model.golden);
  ASSERT_FALSE(cases.empty());
  const auto checkpoint = open_checkpoint(model.path);
  const auto backend = make_cpu_backend(2);
  constexpr int context = 256;
  LoadedModel loaded =
      load_model(*checkpoint, *backend, {.max_tokens = 64, .max_logit_rows = 16, .context = context});
  Runner runner(*loaded.decoder, *backend, context);
  for (const GoldenCase& one : cases) {
    runner.reset();
    const std::vector<float> logits = runner.feed(one.ids, one.rows);
    EXPECT_LE(relative_error(logits, one.logits), model.tolerance) << model.name << ' ' << one.name;
    if (one.greedy.empty()) continue;
    runner.reset();
    const std::vector<TokenId> tokens = generate(runner, one.ids, one.greedy.size());
    if (one.min_margin < largest_error(logits, one.logits)) continue;
    EXPECT_EQ(tokens, one.greedy) << model.name << ' ' << one.name;
  }
}

class LocalModel : public ::testing::TestWithParam<std::string> {};

TEST_P(LocalModel, AgreesWithTheReference) {
  const fs::path path = data_folder() / "models" / GetParam();
  expect_agreement({GetParam(), path, path / "golden.safetensors", float_weight_logits});
}
INSTANTIATE_TEST_SUITE_P(Golden, LocalModel, ::testing::ValuesIn(names_in(data_folder() / "models")), test_name);

std::vector<std::string> local_gguf_files() {
  std::vector<std::string> names = names_in(data_folder() / "gguf");
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(".gguf"); });
  return names;
}

void expect_gguf_agreement(const fs::path& folder, const std::string& name) {
  const fs::path path = folder / name;
  fs::path golden = path;
  expect_agreement({name, path, golden.replace_extension(".golden.safetensors"), quantized_weight_logits});
}

class LocalGguf : public ::testing::TestWithParam<std::string> {};

TEST_P(LocalGguf, AgreesWithTheReference) { expect_gguf_agreement(data_folder() / "gguf", GetParam()); }
INSTANTIATE_TEST_SUITE_P(Golden, LocalGguf, ::testing::ValuesIn(local_gguf_files()), test_name);

TEST(Families, AllHaveGoldenFiles) {
  std::set<std::string> covered;
  for (const std::string& name : names_in(data_folder() / "models")) {
    covered.insert(std::string(open_checkpoint(data_folder() / "models" / name)->architecture()));
  }
  for (const Architecture& arch : architectures()) {
    for (const std::string_view type : arch.hf_types) {
      EXPECT_TRUE(covered.contains(std::string(type))) << type << " has no model in tests/data/models";
    }
  }
}

class SharedModel : public ::testing::TestWithParam<std::string> {};

TEST_P(SharedModel, AgreesWithTheReference) {
  const auto reference = shared_reference();
  if (!reference) GTEST_SKIP() << "no ../shared/reference";
  const fs::path path = *reference / "models" / GetParam();
  expect_agreement({GetParam(), path, path / "golden.safetensors", float_weight_logits});
}
INSTANTIATE_TEST_SUITE_P(Golden, SharedModel,
                         ::testing::Values("gpt2", "gpt_oss", "gpt_oss_bf16", "granite", "granitemoe", "llama",
                                           "mistral", "mixtral", "phi", "phi3", "qwen2", "qwen3", "qwen3_moe",
                                           "tinyllama"),
                         test_name);

class SharedGguf : public ::testing::TestWithParam<std::string> {};

TEST_P(SharedGguf, AgreesWithTheReference) {
  const auto reference = shared_reference();
  if (!reference) GTEST_SKIP() << "no ../shared/reference";
  expect_gguf_agreement(*reference / "gguf", GetParam());
}
INSTANTIATE_TEST_SUITE_P(
    Golden, SharedGguf,
    ::testing::Values("gpt-oss-MXFP4_MOE.gguf", "gpt2-F16.gguf", "gpt2-Q5_K_M.gguf", "llama-BF16.gguf",
                      "llama-F16.gguf", "llama-IQ3_S.gguf", "llama-IQ4_NL.gguf", "llama-IQ4_XS.gguf",
                      "llama-Q2_K.gguf", "llama-Q3_K_M.gguf", "llama-Q4_0.gguf", "llama-Q4_1.gguf",
                      "llama-Q4_K_M.gguf", "llama-Q5_0.gguf", "llama-Q5_1.gguf", "llama-Q5_K_M.gguf",
                      "llama-Q6_K.gguf", "llama-Q8_0.gguf", "llama-TQ2_0.gguf", "qwen2-Q4_K_M.gguf",
                      "qwen2-Q8_0.gguf"),
    test_name);

TEST(SharedReal, TinyStoriesAgreesWithTheReference) {
  const auto reference = shared_reference();
  if (!reference) GTEST_SKIP() << "no ../shared/reference";
  const fs::path path = *reference / "real" / "TinyStories-656K";
  expect_agreement({"TinyStories-656K", path, path / "golden.safetensors", float_weight_logits});
}

}  // namespace
}  // namespace inferno::testing
