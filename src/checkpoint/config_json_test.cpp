#include "checkpoint/config_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/caught_error.h"
#include "support/temporary_directory.h"

namespace inferno {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Config parse(std::string_view json) {
  return parse_config(json, "config.json");
}
std::string refusal(std::string_view json) {
  const Error error = caught_error([&] { parse(json); });
  EXPECT_EQ(error.kind(), ErrorKind::corrupt);
  EXPECT_THAT(error.what(), HasSubstr("config.json"));
  return error.what();
}

TEST(ConfigJson, FlattensObjectsWithDots) {
  const Config c = parse(R"({"a": {"b": {"c": 3}, "d": true}, "e": "x"})");
  EXPECT_EQ(c.integer("a.b.c"), 3);
  EXPECT_TRUE(c.flag("a.d", false));
  EXPECT_EQ(c.text("e", ""), "x");
}

TEST(ConfigJson, TreatsNullAsAbsent) {
  const Config c = parse(R"({"sliding_window": null, "rope_scaling": null, "n": 1})");
  EXPECT_FALSE(c.has("sliding_window"));
  EXPECT_TRUE(c.is_null("sliding_window"));
  EXPECT_FALSE(c.is_null("n") || c.is_null("missing"));
  EXPECT_THAT(c.unread(), ElementsAre("n"));
}

TEST(ConfigJson, KeepsListsOfOneTypeAndReportsTheOthers) {
  const Config c = parse(R"({"numbers": [1, 2.5, -3], "texts": ["a", "b"], "none": [],
                             "mixed": [1, "a"], "flags": [true], "objects": [{"x": 1}], "nested": [[1], [2]]})");
  EXPECT_THAT(c.numbers("numbers"), ElementsAre(1.0f, 2.5f, -3.0f));
  EXPECT_THAT(c.texts("texts"), ElementsAre("a", "b"));
  EXPECT_THAT(c.texts("none"), IsEmpty());
  EXPECT_THAT(c.unread(), ElementsAre("flags", "mixed", "nested", "objects"));
}

TEST(ConfigJson, ContinuesAfterAListOfObjects) {
  const Config c = parse(R"({"a": {"objects": [{"x": [{"y": 1}]}], "after": 2}, "b": 3})");
  EXPECT_EQ(c.integer("a.after"), 2);
  EXPECT_EQ(c.integer("b"), 3);
}

TEST(ConfigJson, RefusesNonObjects) {
  for (const char* text : {"[]", "3", "\"x\"", "null", "true", "[{\"a\": 1}]"}) {
    EXPECT_THAT(refusal(text), HasSubstr("object")) << text;
  }
}

TEST(ConfigJson, RefusesInvalidJson) {
  for (const char* text : {"", "{", "{\"a\": }", "{\"a\": 1} x", "{'a': 1}", "{\"a\": NaN}", "{\"a\": 1e999}",
                           "{\"a\": 01}", "{\"\xFF\": 1}", "{\"a\": \"\x01\"}", "{\"a\": 1,}"}) {
    EXPECT_THAT(refusal(text), HasSubstr("not valid JSON")) << text;
  }
}

TEST(ConfigJson, RefusesAZeroByte) {
  EXPECT_THAT(refusal(std::string_view("{}\0{\"a\": 1}", 11)), HasSubstr("byte 2, which is zero"));
}

TEST(ConfigJson, RefusesKeysGivenTwice) {
  EXPECT_THAT(refusal(R"({"a": 1, "a": 1})"), HasSubstr("duplicate key \"a\""));
  EXPECT_THAT(refusal(R"({"a": null, "a": 1})"), HasSubstr("duplicate key"));
  EXPECT_THAT(refusal(R"({"a": {"b": 1}, "a": {"c": 1}})"), HasSubstr("duplicate key"));
  EXPECT_THAT(refusal(R"({"a": {"b": 1}, "a.b": 2})"), HasSubstr("duplicate key"));
}

TEST(ConfigJson, SurvivesAHundredThousandLevels) {
  EXPECT_THAT(refusal(std::string(100000, '[')), HasSubstr("object"));
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += R"({"a":)";
  EXPECT_THAT(refusal(objects), HasSubstr("nesting"));
  EXPECT_THAT(refusal(R"({"a":)" + std::string(100000, '[') + std::string(100000, ']') + "}"),
              HasSubstr("nesting"));
}

TEST(ConfigJson, LimitsTheCostOfFlattening) {
  EXPECT_THAT(refusal(R"({")" + std::string(10000, 'k') + R"(": 1})"), HasSubstr("at most 512 bytes"));
  std::string many = "{";
  for (int i = 0; i < 70000; ++i) many += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":0";
  EXPECT_THAT(refusal(many + "}"), HasSubstr("at most 65536"));
}

TEST(ConfigJson, RefusesTooLargeATextAsItDoesAFile) {
  const std::string text((16u << 20) + 1, ' ');
  const TemporaryDirectory folder;
  const std::filesystem::path path = folder.path() / "config.json";
  std::ofstream(path) << text;
  const Error of_text = caught_error([&] { parse_config(text, path.string()); });
  const Error of_file = caught_error([&] { read_config(path); });
  EXPECT_EQ(of_text.kind(), ErrorKind::unsupported);
  EXPECT_EQ(of_file.kind(), of_text.kind());
  EXPECT_STREQ(of_file.what(), of_text.what());
}

TEST(ConfigJson, ReadsRopeParametersUnderTheirOlderNames) {
  const Config c = parse(R"({"rope_parameters": {"rope_theta": 1e6, "rope_type": "yarn", "factor": 4.0,
                             "partial_rotary_factor": 0.5, "long_factor": [1, 2]}})");
  EXPECT_FLOAT_EQ(c.number("rope_theta"), 1e6f);
  EXPECT_FLOAT_EQ(c.number("partial_rotary_factor"), 0.5f);
  EXPECT_EQ(c.text("rope_scaling.rope_type", ""), "yarn");
  EXPECT_FLOAT_EQ(c.number("rope_scaling.factor"), 4.0f);
  EXPECT_THAT(c.numbers("rope_scaling.long_factor"), ElementsAre(1.0f, 2.0f));
  EXPECT_THAT(c.unread(), IsEmpty());
}

TEST(ConfigJson, AcceptsBothNamesOfTheScalingType) {
  EXPECT_EQ(parse(R"({"rope_scaling": {"type": "linear", "factor": 2}})").text("rope_scaling.rope_type", ""),
            "linear");
  EXPECT_EQ(
      parse(R"({"rope_scaling": {"type": "su", "rope_type": "su"}})").text("rope_scaling.rope_type", ""),
      "su");
  EXPECT_THAT(refusal(R"({"rope_scaling": {"type": "linear", "rope_type": "yarn"}})"),
              HasSubstr("contradict"));
}

TEST(ConfigJson, TreatsTheDefaultTypeAsNoScaling) {
  const Config c = parse(R"({"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0,
                             "original_max_position_embeddings": 4096}})");
  EXPECT_FALSE(c.has("rope_scaling.rope_type"));
  EXPECT_EQ(c.integer("original_max_position_embeddings"), 4096);
}

TEST(ConfigJson, AcceptsThetaTwiceOnlyWhenBothAgree) {
  EXPECT_FLOAT_EQ(parse(R"({"rope_theta": 5.0, "rope_scaling": {"rope_theta": 5}})").number("rope_theta"),
                  5.0f);
  EXPECT_THAT(refusal(R"({"rope_theta": 5, "rope_scaling": {"rope_theta": 6}})"), HasSubstr("contradict"));
  EXPECT_THAT(refusal(R"({"rope_theta": 5, "rope_parameters": {"rope_theta": 6}})"), HasSubstr("contradict"));
}

TEST(ConfigJson, LeavesParametersPerLayerTypeUnread) {
  const Config c =
      parse(R"({"rope_parameters": {"full_attention": {"rope_theta": 1e6, "rope_type": "default"},
                             "sliding_attention": {"rope_theta": 1e4, "odd": [1, "a"]}}})");
  EXPECT_FALSE(c.has("rope_theta"));
  EXPECT_THAT(
      c.unread(),
      ElementsAre("rope_parameters.full_attention.rope_theta", "rope_parameters.full_attention.rope_type",
                  "rope_parameters.sliding_attention.odd", "rope_parameters.sliding_attention.rope_theta"));
}

}  // namespace
}  // namespace inferno
