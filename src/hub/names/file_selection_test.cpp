#include "hub/names/file_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace inferno::hub {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<HubFile> files(std::initializer_list<const char*> paths) {
  std::vector<HubFile> all;
  for (const char* path : paths)
    all.push_back({path, 100, std::string(40, static_cast<char>('a' + all.size() % 6)) + path, ""});
  return all;
}

std::vector<std::string> taken(const FileSelection& selection) {
  std::vector<std::string> paths;
  for (const HubFile& file : selection.taken) paths.push_back(file.path);
  return paths;
}

std::string reason(const FileSelection& selection, std::string_view path) {
  for (const SkippedFile& skipped : selection.skipped) {
    if (skipped.file.path == path) return skipped.reason;
  }
  return "";
}

std::string why(const std::vector<HubFile>& listing, const SelectionRules& rules) {
  try {
    select_files(listing, rules);
  } catch (const Error& error) {
    return std::string(error.what()) + " | " + error.advice().why;
  }
  return "";
}

const std::vector<HubFile> gpt_oss = files(
    {".gitattributes", "LICENSE", "README.md", "USAGE_POLICY", "chat_template.jinja", "config.json",
     "generation_config.json", "metal/model.bin", "model-00000-of-00002.safetensors",
     "model-00001-of-00002.safetensors", "model.safetensors.index.json", "original/config.json",
     "original/model.safetensors", "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json"});

const std::vector<HubFile> gguf = files(
    {".gitattributes", "README.md", "config.json", "mmproj-x-f16.gguf", "x-BF16-00001-of-00002.gguf",
     "x-BF16-00002-of-00002.gguf", "x-Q4_K_M.gguf", "x-Q8_0.gguf", "x-UD-Q4_K_M.gguf", "x.imatrix.gguf"});

TEST(FileSelection, TakesOneOfTheThreeCopiesOfGptOss) {
  const FileSelection selection = select_files(gpt_oss);
  EXPECT_EQ(selection.format, ModelFormat::safetensors);
  EXPECT_THAT(taken(selection),
              ElementsAre("LICENSE", "README.md", "USAGE_POLICY", "chat_template.jinja", "config.json",
                          "generation_config.json", "model-00000-of-00002.safetensors",
                          "model-00001-of-00002.safetensors", "model.safetensors.index.json",
                          "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json"));
  EXPECT_EQ(reason(selection, "original/model.safetensors"), "another copy of the weights");
  EXPECT_EQ(reason(selection, "metal/model.bin"), "another copy of the weights");
  EXPECT_EQ(selection.taken.size() + selection.skipped.size(), gpt_oss.size());
}

TEST(FileSelection, SkipsSecondCopiesAtTheTopLevel) {
  const FileSelection selection =
      select_files(files({"config.json", "consolidated.safetensors", "model-00001-of-00001.safetensors",
                          "model.fp16.safetensors", "pytorch_model.bin", "tokenizer.model", "x-Q4_0.gguf"}));
  EXPECT_THAT(taken(selection),
              ElementsAre("config.json", "model-00001-of-00001.safetensors", "tokenizer.model"));
  EXPECT_EQ(reason(selection, "consolidated.safetensors"), "another copy of the weights");
  EXPECT_THAT(reason(selection, "x-Q4_0.gguf"), HasSubstr(":QUANT"));
}

TEST(FileSelection, PrefersQ4KMThenQ8ThenTheFirst) {
  EXPECT_THAT(taken(select_files(gguf)), ElementsAre("README.md", "x-Q4_K_M.gguf"));
  EXPECT_EQ(select_files(gguf).quant, "Q4_K_M");
  EXPECT_THAT(taken(select_files(files({"x-Q2_K.gguf", "x-Q8_0.gguf"}))), ElementsAre("x-Q8_0.gguf"));
  EXPECT_THAT(taken(select_files(files({"x-Q6_K.gguf", "x-Q2_K.gguf"}))), ElementsAre("x-Q2_K.gguf"));
}

TEST(FileSelection, TakesTheRequestedQuantizationWithAllParts) {
  EXPECT_THAT(taken(select_files(gguf, {.quant = "bf16"})),
              ElementsAre("README.md", "x-BF16-00001-of-00002.gguf", "x-BF16-00002-of-00002.gguf"));
  EXPECT_THAT(taken(select_files(gguf, {.quant = "ud-q4_k_m"})),
              ElementsAre("README.md", "x-UD-Q4_K_M.gguf"));
  EXPECT_EQ(reason(select_files(gguf), "mmproj-x-f16.gguf"), "an accessory file, not the model");
  EXPECT_EQ(reason(select_files(gguf), "x-Q8_0.gguf"), "another quantization");
}

TEST(FileSelection, ListsTheAvailableQuantizations) {
  EXPECT_THAT(why(gguf, {.quant = "Q3_K_S"}),
              HasSubstr("has no Q3_K_S; available: BF16, Q4_K_M, Q8_0, UD-Q4_K_M"));
  EXPECT_THAT(why(gpt_oss, {.quant = "Q4_0"}), HasSubstr("no GGUF files"));
}

TEST(FileSelection, RefusesASplitModelThatLacksAPart) {
  EXPECT_THAT(why(files({"x-Q8_0-00001-of-00003.gguf", "x-Q8_0-00003-of-00003.gguf"}), {}),
              HasSubstr("the list has 2 parts, the file name says 3"));
}

TEST(FileSelection, RefusesUnsupportedFormats) {
  EXPECT_THAT(why(files({"config.json", "pytorch_model.bin"}), {}), HasSubstr("\"pytorch_model.bin\""));
  EXPECT_THAT(why({}, {}), HasSubstr("this model has no weights"));
}

TEST(FileSelection, TakesOneFileWithItsParts) {
  EXPECT_THAT(taken(select_files(gpt_oss, {.path = "config.json"})), ElementsAre("config.json"));
  EXPECT_THAT(taken(select_files(gguf, {.path = "x-BF16-00001-of-00002.gguf"})),
              ElementsAre("x-BF16-00001-of-00002.gguf", "x-BF16-00002-of-00002.gguf"));
  EXPECT_THAT(why(gpt_oss, {.path = "nothing"}), HasSubstr("no such file"));
}

TEST(FileSelection, FollowsPatterns) {
  EXPECT_THAT(taken(select_files(gpt_oss, {.include = {"original/"}})),
              ElementsAre("original/config.json", "original/model.safetensors"));
  EXPECT_THAT(
      taken(select_files(gpt_oss, {.include = {"*.json"}, .exclude = {"original/*", "t*", "*s_map*"}})),
      ElementsAre("config.json", "generation_config.json", "model.safetensors.index.json"));
  EXPECT_EQ(reason(select_files(gpt_oss, {.exclude = {"README*"}}), "README.md"), "matches --exclude");
  EXPECT_THAT(why(gpt_oss, {.include = {"*.exe"}}), HasSubstr("no file matches *.exe"));
  EXPECT_THAT(why(gpt_oss, {.exclude = {"*"}}), HasSubstr("matches all"));
}

TEST(FileSelection, SkipsHostileNamesAndRefusesClashes) {
  auto listing = gpt_oss;
  listing.push_back({"../../.bashrc", 1, "", ""});
  listing.push_back({"/etc/passwd.json", 1, "", ""});
  const FileSelection selection = select_files(listing, {.include = {"*"}});
  EXPECT_EQ(selection.taken.size(), gpt_oss.size());
  EXPECT_THAT(reason(selection, "../../.bashrc"), HasSubstr("\"..\""));
  EXPECT_THAT(why(files({"a", "a/b"}), {.include = {"*"}}), HasSubstr("as a file and as a folder"));
  EXPECT_THAT(why(files({"a", "a"}), {.include = {"*"}}), HasSubstr("listed twice"));
}

TEST(FileSelection, CountsABlobOnce) {
  const FileSelection selection = select_files(std::vector<HubFile>{
      {"config.json", 10, "a", ""}, {"model.safetensors", 100, "b", "c"}, {"vocab.json", 10, "a", ""}});
  EXPECT_EQ(selection.bytes(), 110u);
}

TEST(MatchesPattern, ReadsShellPatterns) {
  EXPECT_TRUE(matches_pattern("a/b/c.json", "*.json"));
  EXPECT_TRUE(matches_pattern("abc", "a?c"));
  EXPECT_TRUE(matches_pattern("x1", "x[0-9]"));
  EXPECT_FALSE(matches_pattern("xa", "x[!a-c]"));
  EXPECT_TRUE(matches_pattern("x[", "x["));
  EXPECT_FALSE(matches_pattern("abc", "ab"));
  EXPECT_FALSE(matches_pattern("abc", ""));
  EXPECT_TRUE(matches_pattern("", "*"));
  EXPECT_FALSE(matches_pattern(std::string(2000, 'a'), "*a*a*a*a*a*a*a*a*a*a*a*a*a*b"));
}

}  // namespace
}  // namespace inferno::hub
