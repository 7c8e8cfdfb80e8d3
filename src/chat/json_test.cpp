#include "chat/json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>

#include "support/caught_error.h"

namespace inferno {
namespace {

TEST(Json, KeepsTheOrderOfKeys) {
  EXPECT_EQ(parse_json(R"({"b": 1, "a": {"z": 1, "y": 2}})", "x").dump(), R"({"b":1,"a":{"z":1,"y":2}})");
}

TEST(Json, KeepsTheFirstPlaceAndTheLastValueOfARepeatedKey) {
  EXPECT_EQ(parse_json(R"({"b": 1, "a": 2, "b": 3})", "x").dump(), R"({"b":3,"a":2})");
}

TEST(Json, TakesTheLastValueAmongManyKeys) {
  std::string text = "{";
  for (int i = 0; i < 50; ++i) text += "\"k" + std::to_string(i) + "\": 0, ";
  const Json json = parse_json(text + "\"k7\": 1, \"k40\": 2, \"k7\": 3}", "x");
  EXPECT_EQ(json.size(), 50u);
  EXPECT_EQ(json.at("k7"), 3);
  EXPECT_EQ(json.at("k40"), 2);
}

TEST(Json, ReadsALargeObjectInLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) text += "\"k" + std::to_string(i) + "\":0,";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(parse_json(text + "\"end\":0}", "x").size(), 200'001u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Json, RefusesIntegersThatWouldLoseDigits) {
  EXPECT_EQ(parse_json("[9223372036854775807, -9223372036854775808]", "x")[1], INT64_MIN);
  for (const char* text :
       {"9223372036854775808", "-9223372036854775809", "[123456789012345678901234567890]"}) {
    EXPECT_EQ(caught_error([&] { parse_json(text, "x"); }).kind(), ErrorKind::corrupt) << text;
  }
  EXPECT_EQ(parse_json("1e30", "x"), 1e30);
}

TEST(Json, RoundsLargeIntegersOnRequest) {
  const Json json =
      parse_json(R"({"model_max_length": 1000000000000000019884624838656, "n": 18446744073709551615})", "x",
                 LargeIntegers::round);
  EXPECT_EQ(json.at("model_max_length"), 1e30);
  EXPECT_EQ(json.at("n"), 18446744073709551615.0);
}

TEST(Json, ParsesTextThatMayNotBeJsonWithoutAnError) {
  EXPECT_EQ(parse_json_if_valid(R"({"a": [1]})"), (Json{{"a", {1}}}));
  for (const std::string& text : {std::string("{\"a\":"), std::string(), std::string("9223372036854775808"),
                                  std::string(257, '[') + std::string(257, ']')}) {
    EXPECT_FALSE(parse_json_if_valid(text)) << text;
  }
}

TEST(Json, NamesTheByteOfInvalidJson) {
  const Error error = caught_error([] { parse_json("{\"a\": tru}", "request"); });
  EXPECT_EQ(error.kind(), ErrorKind::corrupt);
  EXPECT_NE(std::string(error.what()).find("request"), std::string::npos);
  for (const char* text : {"", "{", "[1,]", "{\"a\":}", "nul", "\"\\ud800\"", "\"\xff\"", "1 2", "{a: 1}"}) {
    EXPECT_EQ(caught_error([&] { parse_json(text, "x"); }).kind(), ErrorKind::corrupt) << text;
  }
}

TEST(Json, RefusesDeepNesting) {
  EXPECT_NO_THROW(parse_json(std::string(256, '[') + std::string(256, ']'), "x"));
  const std::string deep(100'000, '[');
  EXPECT_EQ(caught_error([&] { parse_json(deep, "x"); }).kind(), ErrorKind::corrupt);
}

}  // namespace
TEST(Json, RefusesWhatFollowsANulByte) {
  using namespace std::string_literals;
  EXPECT_THROW(parse_json("{}\0x"s, "request"), Error);
  EXPECT_THROW(parse_json("\0{}"s, "request"), Error);
  EXPECT_EQ(parse_json_if_valid("{}\0"s), std::nullopt);
}

TEST(Json, OfARequestHasNoKeyTwiceAndIsNotNestedDeeply) {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  EXPECT_EQ(parse_request_json(R"({"a": 1, "b": {"a": 2}})", "request"),
            parse_json(R"({"a": 1, "b": {"a": 2}})", "request"));
  EXPECT_THROW(parse_request_json(R"({"a": 1, "a": 1})", "request"), Error);
  EXPECT_TRUE(parse_request_json(R"({"a": 9223372036854775808})", "request").at("a").is_number_float());
  EXPECT_THROW(parse_request_json(R"({"a": [9223372036854775808]})", "request"), Error);
  std::string many = "{";
  for (int i = 0; i < 40; ++i) many += fmt::format("\"{}\": 1, ", i);
  EXPECT_THROW(parse_request_json(many + "\"7\": 1}", "request"), Error);
  EXPECT_NO_THROW(parse_request_json(nested(64), "request"));
  EXPECT_THROW(parse_request_json(nested(65), "request"), Error);
}

}  // namespace inferno
