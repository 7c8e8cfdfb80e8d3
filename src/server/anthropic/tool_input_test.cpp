#include "server/anthropic/tool_input.h"

#include <gtest/gtest.h>

namespace inferno::server {
namespace {

struct Fed {
  std::string sent, rest;
  Json value;
};

// The result must not depend on how the text was cut into pieces.
Fed feed(std::string_view text, std::size_t piece) {
  ToolInput input;
  Fed fed;
  for (std::size_t at = 0; at < text.size(); at += piece) fed.sent += input.push(text.substr(at, piece));
  fed.rest = input.rest();
  fed.value = input.value();
  return fed;
}

Fed feed(std::string_view text) {
  const Fed whole = feed(text, text.size() + 1), bytes = feed(text, 1);
  EXPECT_EQ(whole.sent, bytes.sent);
  EXPECT_EQ(whole.rest, bytes.rest);
  EXPECT_EQ(whole.value, bytes.value);
  return whole;
}

TEST(ToolInput, PassesAnObjectOnAsItIsWritten) {
  const std::string_view text =
      R"({"a": [1, -0.5e+3, 0, true, false, null, {}, []], "b\n\u00e9": {"c": "d\"}"}, "ü": 12} )";
  const Fed fed = feed(text);
  EXPECT_EQ(fed.sent, text);
  EXPECT_EQ(fed.rest, "");
  EXPECT_EQ(fed.value, Json::parse(text));
}

TEST(ToolInput, TakesNumbersBeyond64Bits) {
  const Fed fed = feed(R"({"n": 123456789012345678901234567890})");
  EXPECT_EQ(fed.rest, "");
  EXPECT_EQ(fed.value.at("n"), 123456789012345678901234567890.0);
}

TEST(ToolInput, DropsBlanksBeforeTheObject) {
  EXPECT_EQ(feed(" \n{}").sent, "{}");
  EXPECT_EQ(feed(" \n{}").rest, "");
}

TEST(ToolInput, IsAnEmptyObjectWithoutArguments) {
  EXPECT_EQ(feed("").value, Json::object());
  EXPECT_EQ(feed("").rest, "");
  EXPECT_EQ(feed(" \n").rest, "");
}

TEST(ToolInput, EscapesLineBreaksWithinStrings) {
  const Fed fed = feed("{\"text\": \"one\ntwo\tthree\x01\",\n\"n\": 1}");
  EXPECT_EQ(fed.value.at("text"), "one\ntwo\tthree\x01");
  EXPECT_EQ(fed.sent, "{\"text\": \"one\\ntwo\\tthree\\u0001\",\n\"n\": 1}");
  EXPECT_EQ(fed.rest, "");
}

TEST(ToolInput, KeepsArgumentsThatAreNoObjectAsText) {
  for (const char* text : {"[1]", "\"a\"", "12", "null", "hello", "rm -rf /"}) {
    const Fed fed = feed(text);
    EXPECT_EQ(fed.sent, "") << text;
    EXPECT_EQ(fed.rest, text);
    EXPECT_EQ(fed.value, Json::object());
  }
}

TEST(ToolInput, StopsBeforeTheFirstByteThatIsNotJson) {
  struct Case {
    const char *text, *sent;
  };
  const Case cases[] = {{"{a: 1}", "{"},
                        {"{\"a\" 1}", "{\"a\" "},
                        {"{\"a\": tru}", "{\"a\": tru"},
                        {"{\"a\": 01}", "{\"a\": 0"},
                        {"{\"a\": 1,}", "{\"a\": 1,"},
                        {"{\"a\": [1}", "{\"a\": [1"},
                        {"{\"a\": -}", "{\"a\": -"},
                        {"{\"a\": 1.}", "{\"a\": 1."},
                        {"{\"a\": \"\\x\"}", "{\"a\": \"\\"},
                        {"{'a': 1}", "{"},
                        {"{\"a\": \"\\u12g4\"}", "{\"a\": \"\\u12"},
                        {"{\"a\": ü}", "{\"a\": "}};
  for (const Case& one : cases) {
    const Fed fed = feed(one.text);
    EXPECT_EQ(fed.sent, one.sent);
    EXPECT_EQ(fed.rest, one.text);
    EXPECT_EQ(fed.value, Json::object());
  }
}

TEST(ToolInput, KeepsAnUnfinishedObjectAsText) {
  const std::string_view text = R"({"command": "rm -rf /tmp/x"})";
  for (std::size_t length = 1; length < text.size(); ++length) {
    const Fed fed = feed(text.substr(0, length));
    EXPECT_EQ(fed.rest, text.substr(0, length));
    EXPECT_EQ(fed.value, Json::object());
  }
}

TEST(ToolInput, KeepsOnlyWhatFollowsAnObjectAsText) {
  const Fed fed = feed("{\"a\": 1} and more");
  EXPECT_EQ(fed.sent, "{\"a\": 1} ");
  EXPECT_EQ(fed.value, Json({{"a", 1}}));
  EXPECT_EQ(fed.rest, "and more");
}

TEST(ToolInput, RefusesHalfASurrogatePairAndDeepNesting) {
  EXPECT_EQ(feed("{\"a\": \"\\ud83d\"}").value, Json::object());
  EXPECT_EQ(feed("{\"a\": \"\\ud83d\"}").rest, "{\"a\": \"\\ud83d\"}");
  const std::string deep = "{\"a\":" + std::string(100'000, '[');
  EXPECT_EQ(feed(deep).rest, deep);
  EXPECT_LT(feed(deep).sent.size(), 300u);
}

}  // namespace
}  // namespace inferno::server
