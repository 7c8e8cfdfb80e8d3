#include "service/sampling_settings.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "chat/json.h"

namespace inferno {
namespace {

std::string refusal(std::string_view name, const Json& value) {
  SamplingSettings settings;
  try {
    EXPECT_TRUE(set_sampling(settings, name, value));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_request);
    return error.what();
  }
  return "";
}

TEST(SamplingSettings, ComeFromJsonUnderTheSameNames) {
  SamplingSettings settings;
  const Json line =
      Json::parse(R"({"max_tokens":5,"top_p":0.9,"stop":"x","logit_bias":{"7":-100},"num_predict":6})");
  for (const auto& [key, value] : line.items()) {
    EXPECT_TRUE(set_sampling(settings, key, value)) << key;
  }
  EXPECT_EQ(settings.max_tokens, 6);
  EXPECT_EQ(settings.top_p, 0.9f);
  EXPECT_EQ(settings.stop, std::vector<std::string>{"x"});
  EXPECT_FALSE(set_sampling(settings, "temprature", 1));
  set_sampling(settings, "top_p", nullptr);
  EXPECT_EQ(settings.top_p, std::nullopt);
}

TEST(SamplingSettings, TakeBiasesAsLlamaServerWritesThem) {
  SamplingSettings settings;
  set_sampling(settings, "logit_bias", Json::parse("[[7, -1.5], [8, false]]"));
  EXPECT_EQ(settings.logit_bias, (std::vector<std::pair<TokenId, float>>{{7, -1.5f}, {8, -100.0f}}));
  set_sampling(settings, "logit_bias", Json::array());
  EXPECT_TRUE(settings.logit_bias->empty());
  for (const char* wrong : {"[7]", "[[7]]", "[[\"a\", 1]]", "[[-7, 1]]", "[[7, true]]", "[[7, 101]]"}) {
    EXPECT_NE(refusal("logit_bias", Json::parse(wrong)), "") << wrong;
  }
}

TEST(SamplingSettings, NameWhatIsWrong) {
  EXPECT_EQ(refusal("temperature", "hot"), "temperature: expected a number from 0 to 100, found \"hot\"");
  EXPECT_EQ(refusal("top_p", 1.5), "top_p: expected a number from 1e-06 to 1, found 1.5");
  EXPECT_EQ(refusal("top_k", 1.5), "top_k: expected a whole number from -1 to 2147483647, found 1.5");
  EXPECT_EQ(refusal("max_tokens", 0), "max_tokens: expected at least 1, or -1 for no limit, found 0");
  EXPECT_NE(refusal("stop", Json::array({""})), "");
  EXPECT_NE(refusal("stop", Json(std::vector<std::string>(17, "x"))), "");
  EXPECT_NE(refusal("logit_bias", {{"x", 1}}), "");
  EXPECT_NE(refusal("logit_bias", {{"1", 101}}), "");
  EXPECT_NE(refusal("ignore_eos", 1), "");
  EXPECT_NE(refusal("logprobs", 21), "");
  EXPECT_NE(refusal("min_tokens", -1), "");
  EXPECT_NE(refusal("stop_token_ids", 5), "");
  EXPECT_NE(refusal("stop_token_ids", {1, -1}), "");
  EXPECT_NE(refusal("stop_token_ids", {1.5}), "");
  EXPECT_NE(refusal("stop_token_ids", {Json(1e12)}), "");
}

TEST(SamplingSettings, KeepEveryDigitOfASeed) {
  const Json largest = Json::parse("9223372036854775807");
  SamplingSettings settings;
  EXPECT_TRUE(set_sampling(settings, "seed", largest));
  EXPECT_EQ(sampling_of(settings).seed, 9223372036854775807u);
  EXPECT_TRUE(set_sampling(settings, "seed", std::int64_t{7}));  // signed, as our own parser has them
  EXPECT_EQ(sampling_of(settings).seed, 7u);
  EXPECT_TRUE(set_sampling(settings, "seed", -1));
  EXPECT_EQ(sampling_of(settings).seed, std::nullopt);
  EXPECT_NE(refusal("seed", Json::parse("9223372036854775808")), "");
  EXPECT_NE(refusal("seed", -2), "");
  EXPECT_NE(refusal("seed", 0.5), "");
}

TEST(SamplingSettings, PreferFlagsToTheModelsOwn) {
  GenerationConfig makers;
  makers.temperature = 0.6f;
  makers.top_k = 20;
  SamplingSettings flags;
  flags.temperature = 0.0f;
  const Sampling sampling = sampling_of(merged(settings_of(makers), flags));
  EXPECT_EQ(sampling.temperature, 0.0f);
  EXPECT_EQ(sampling.top_k, 20);
  EXPECT_EQ(sampling.top_p, 1.0f);
  EXPECT_EQ(sampling.seed, std::nullopt);
}

TEST(SamplingSettings, CollectStopTokens) {
  SamplingSettings settings;
  EXPECT_TRUE(set_sampling_text(settings, "stop_token_ids", "7"));
  EXPECT_TRUE(set_sampling_text(settings, "stop_token_ids", "9"));
  EXPECT_EQ(settings.stop_token_ids, (std::vector<TokenId>{7, 9}));
  EXPECT_TRUE(set_sampling(settings, "stop_token_ids", Json::array({5})));
  EXPECT_EQ(sampling_value(settings, "stop_token_ids"), Json::array({5}));
  EXPECT_THROW(set_sampling_text(settings, "stop_token_ids", "x"), Error);
}

TEST(SamplingSettings, AreShownAsTheyWereSet) {
  SamplingSettings settings;
  EXPECT_TRUE(set_sampling_text(settings, "temperature", "0.7"));
  EXPECT_TRUE(set_sampling_text(settings, "ignore_eos", "on"));
  EXPECT_EQ(sampling_value(settings, "temperature").dump(), "0.7");
  EXPECT_EQ(sampling_value(settings, "ignore_eos"), true);
  EXPECT_TRUE(sampling_value(settings, "top_k").is_null());
}

}  // namespace
}  // namespace inferno
