#include "hub/names/aliases.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "hub/names/model_name.h"

namespace inferno::hub {
namespace {

TEST(Aliases, AreHubNamesWithSizes) {
  EXPECT_GT(aliases().size(), 30u);
  for (const Alias& alias : aliases()) {
    EXPECT_EQ(parse_hub_name(alias.name).text(), alias.original) << alias.name;
    EXPECT_GT(alias.original_bytes, 0u) << alias.name;
    if (alias.quantized.empty()) continue;
    const ModelName quantized = parse_hub_name(alias.quantized);
    EXPECT_FALSE(quantized.quant.empty()) << alias.name;
    EXPECT_LT(alias.quantized_bytes, alias.original_bytes) << alias.name;
  }
}

TEST(Aliases, NeedNoTag) {
  for (const char* name : {"llama3.2", "llama3.1", "qwen3", "qwen2.5", "mistral", "phi3", "phi4", "gpt-oss",
                           "deepseek-r1", "tinyllama", "mixtral", "granite3.3", "Llama3.2:latest",
                           "mistral-nemo", "qwen2.5-coder", "qwen2.5-coder:7b"}) {
    EXPECT_NE(find_alias(name), nullptr) << name;
  }
  EXPECT_EQ(find_alias("llama3.2")->original, "meta-llama/Llama-3.2-3B-Instruct");
  EXPECT_EQ(find_alias("llama3.2:7b"), nullptr);
  EXPECT_EQ(find_alias("org/name"), nullptr);
}

TEST(Aliases, MeanAQuantizedModelIfTheOriginalIsGatedOrTooLarge) {
  const std::uint64_t gigabyte = 1'000'000'000;
  EXPECT_EQ(choose(*find_alias("llama3.2:1b"), 0).model, "bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M");
  EXPECT_EQ(choose(*find_alias("qwen3:8b"), 64 * gigabyte).model, "Qwen/Qwen3-8B");
  EXPECT_EQ(choose(*find_alias("qwen3:8b"), 16 * gigabyte).model, "Qwen/Qwen3-8B-GGUF:Q4_K_M");
  EXPECT_EQ(choose(*find_alias("qwen3:8b"), 0).model, "Qwen/Qwen3-8B");
  EXPECT_EQ(choose(*find_alias("gpt-oss"), gigabyte).model, "openai/gpt-oss-20b");
}

TEST(Aliases, SayWhatAMixtureReadsAndWhatCannotChat) {
  EXPECT_EQ(find_alias("gpt-oss")->token_bytes, 3'700'000'000u);
  EXPECT_EQ(find_alias("qwen3")->token_bytes, 0u);
  EXPECT_FALSE(find_alias("gpt2")->is_chat);
  EXPECT_TRUE(find_alias("qwen3")->is_chat);
}

TEST(Aliases, OfTheUserReplaceThoseOfTheTable) {
  const Alias before = *find_alias("smollm2");
  add_aliases({{.name = "smollm2", .original = "org/other:Q4_0", .quantized = {}},
               {.name = "mine", .original = "org/name", .quantized = {}}});
  EXPECT_EQ(parse_hub_name("smollm2"), (ModelName{"org", "other", "", "Q4_0", ""}));
  EXPECT_EQ(parse_hub_name("Mine:latest").text(), "org/name");
  EXPECT_EQ(choose(*find_alias("mine"), 1).bytes, 0u);
  add_aliases({before});
  EXPECT_EQ(find_alias("smollm2")->original, before.original);
  EXPECT_EQ(std::ranges::count(aliases(), "smollm2", &Alias::name), 1);
}

TEST(Aliases, ListTheChoicesForAFamily) {
  EXPECT_GE(aliases_like("llama").size(), 4u);
  EXPECT_GE(aliases_like("llama3.2:7b").size(), 2u);
  EXPECT_TRUE(aliases_like("").empty());
  EXPECT_TRUE(aliases_like("unheard-of").empty());
}

TEST(Aliases, AreNoneOfTheUnsupportedFamilies) {
  EXPECT_EQ(unsupported_family("Gemma3:27b"), "gemma3");
  EXPECT_EQ(unsupported_family("qwen3"), "");
  EXPECT_EQ(unsupported_family(""), "");
  for (const Alias& alias : aliases()) EXPECT_EQ(unsupported_family(alias.name), "") << alias.name;
}

TEST(Aliases, RefuseALineOfAnotherForm) {
  EXPECT_THROW(read_aliases("name org/model many open - 0"), Error);
  EXPECT_THROW(read_aliases("name = missing"), Error);
  EXPECT_THROW(read_aliases("name org/model 1.5 perhaps - 0"), Error);
  EXPECT_THROW(read_aliases("name org/model 1.5 open - 0 reads"), Error);
  EXPECT_THROW(read_aliases("name org/model 1.5 open - 0 unknown"), Error);
}

}  // namespace
}  // namespace inferno::hub
