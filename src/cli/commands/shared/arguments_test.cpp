#include "cli/commands/shared/arguments.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "service/sampling_settings.h"

namespace inferno {
namespace {

SamplingSettings from_flags(const std::vector<std::string>& arguments) {
  SamplingSettings settings;
  parse_options([&](Command command) { add_sampling_options(command, settings); }, arguments);
  return settings;
}

TEST(Arguments, SetSamplingSettings) {
  const SamplingSettings settings = from_flags(
      {"--temperature", "0.5", "--top-k", "40", "-n", "7", "--seed", "12", "--ignore-eos", "--stop", "END",
       "--stop", "\n\n", "--presence-penalty", "-1.5", "--logit-bias", "5=-2", "--logit-bias", "6+1"});
  EXPECT_EQ(settings.temperature, 0.5f);
  EXPECT_EQ(settings.top_k, 40);
  EXPECT_EQ(settings.max_tokens, 7);
  EXPECT_EQ(settings.seed, 12);
  EXPECT_EQ(settings.ignore_eos, true);
  EXPECT_EQ(settings.stop, (std::vector<std::string>{"END", "\n\n"}));
  EXPECT_EQ(settings.presence_penalty, -1.5f);
  EXPECT_EQ(settings.logit_bias, (std::vector<std::pair<TokenId, float>>{{5, -2.0f}, {6, 1.0f}}));
  EXPECT_EQ(settings.top_p, std::nullopt);
}

TEST(Arguments, HaveShortFlags) {
  const SamplingSettings settings = from_flags({"-n", "7", "-s", "12", "-r", "END"});
  EXPECT_EQ(settings.max_tokens, 7);
  EXPECT_EQ(settings.seed, 12);
  EXPECT_EQ(settings.stop, std::vector<std::string>{"END"});
}

TEST(Arguments, ThatAreInvalidAreAnError) {
  EXPECT_THROW(from_flags({"--no-such-flag"}), Error);
  EXPECT_THROW(from_flags({"--temperature"}), Error);
}

TEST(Arguments, TakeTheNamesOfOtherPrograms) {
  const SamplingSettings settings =
      from_flags({"--temp", "0", "--n-predict", "3", "--repetition-penalty", "1.1"});
  EXPECT_EQ(settings.temperature, 0.0f);
  EXPECT_EQ(settings.max_tokens, 3);
  EXPECT_EQ(settings.repeat_penalty, 1.1f);
}

CacheChoice cache_from(const std::vector<std::string>& arguments) {
  DeviceOptions options;
  parse_options([&](Command command) { add_device_options(command, options); }, arguments);
  return options.cache;
}

TEST(Arguments, ChooseTheTypeOfTheCache) {
  EXPECT_EQ(name_of(cache_from({})), "auto");
  EXPECT_EQ(name_of(cache_from({"--cache-type", "q8_0"})), "q8_0");
  EXPECT_EQ(name_of(cache_from({"--kv-cache-dtype", "fp8"})), "fp8");
  EXPECT_EQ(name_of(cache_from({"--cache-type", "q8_0,f16"})), "q8_0,f16");
  EXPECT_EQ(name_of(cache_from({"--ctk", "q8_0", "--ctv", "bf16"})), "q8_0,bf16");
  EXPECT_EQ(name_of(cache_from({"--cache-type-v", "f16"})), "auto,f16");
  // The type of one half wins, wherever it stands.
  EXPECT_EQ(name_of(cache_from({"--cache-type-k", "f32", "--cache-type", "fp8"})), "f32,fp8");
  for (const char* option : {"--cache-type", "--cache-type-k", "--cache-type-v"}) {
    try {
      cache_from({option, "q4_0"});
      ADD_FAILURE() << option;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid_request);
      EXPECT_EQ(std::string(error.what()),
                std::string(option) + " \"q4_0\": expected auto, f32, f16, bf16, q8_0 or fp8");
    }
  }
  EXPECT_THROW(cache_from({"--cache-type-k", "q8_0,f16"}), Error);
}

TEST(Arguments, ListTokenIdsInAnyUsualForm) {
  const std::vector<TokenId> three = {1, 2, 3};
  for (const char* text : {"1,2,3", "1 2\n3", "[1, 2, 3]"})
    EXPECT_EQ(parse_tokens(text, "ids"), three) << text;
  EXPECT_TRUE(parse_tokens(" ", "ids").empty());
  for (const char* text : {"x", "1,-2", "1.5", "99999999999"}) EXPECT_THROW(parse_tokens(text, "ids"), Error);
}

}  // namespace
}  // namespace inferno
