#include "hub/names/gguf_file_name.h"

#include <gtest/gtest.h>

namespace inferno::hub {
namespace {

TEST(GgufFileName, FindsTheQuantization) {
  const struct {
    const char *path, *quant;
  } cases[] = {{"Llama-3.2-1B-Instruct-Q4_K_M.gguf", "Q4_K_M"},
               {"model.Q8_0.gguf", "Q8_0"},
               {"x-UD-IQ2_XXS.gguf", "UD-IQ2_XXS"},
               {"qwen2.5-0.5b-instruct-q5_0.gguf", "q5_0"},
               {"x-BF16.gguf", "BF16"},
               {"gpt-oss-20b-mxfp4.gguf", "mxfp4"},
               {"BF16/x-00001-of-00002.gguf", "BF16"},
               {"Q4_K_M/model.gguf", "Q4_K_M"},
               {"x-TQ1_0.gguf", "TQ1_0"},
               {"model.gguf", ""},
               {"Qwen3-8B.gguf", ""}};
  for (const auto& one : cases) EXPECT_EQ(read_gguf_name(one.path).quant, one.quant) << one.path;
}

TEST(GgufFileName, KnowsThePartsOfASplitModel) {
  const GgufFileName name = read_gguf_name("Q8_0/x-Q8_0-00002-of-00003.gguf");
  EXPECT_EQ(name.group, "Q8_0/x-Q8_0");
  EXPECT_EQ(name.stem, "x-Q8_0");
  EXPECT_EQ(name.part, 2);
  EXPECT_EQ(name.parts, 3);
  for (const char* whole :
       {"x-00003-of-00002.gguf", "x-00000-of-00002.gguf", "x-0000a-of-00002.gguf", "x.gguf"}) {
    EXPECT_EQ(read_gguf_name(whole).parts, 1) << whole;
  }
}

TEST(GgufFileName, TellsModelsFromAccessoryFiles) {
  for (const char* beside : {"mmproj-x-f16.gguf", "x.imatrix.gguf", "mtp-x.gguf", "x-MMPROJ.gguf"}) {
    EXPECT_TRUE(read_gguf_name(beside).is_companion) << beside;
  }
  EXPECT_FALSE(read_gguf_name("smtp-x.gguf").is_companion);
}

TEST(GgufFileName, MatchesItsQuantizationInAnyCase) {
  const GgufFileName name = read_gguf_name("Org-Name-UD-Q4_K_M.gguf");
  for (const char* wanted : {"ud-q4_k_m", "Q4_K_M", "Org-Name-UD-Q4_K_M", "org-name-ud-q4_k_m.gguf"}) {
    EXPECT_TRUE(matches_quant(name, wanted)) << wanted;
  }
  for (const char* wanted : {"K_M_", "4_K_M", "Q4_K_S", "", ".gguf", "Q4"}) {
    EXPECT_FALSE(matches_quant(name, wanted)) << wanted;
  }
}

}  // namespace
}  // namespace inferno::hub
