#include "cli/config/toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/caught_error.h"

namespace inferno::toml {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string text_of(std::string_view value) {
  const Document document = parse("key = " + std::string(value), "file");
  EXPECT_EQ(document.entries.size(), 1U);
  return document.entries.at(0).values.at(0).text;
}

std::string problem_of(std::string_view text) {
  return caught_error([&] { parse(text, "file"); }).what();
}

TEST(Toml, ReadsTablesAndKeys) {
  const Document document = parse(
      "# a comment\n"
      "temperature = 0.7 # another\n"
      "\n"
      "[ serve ]\r\n"
      "port=8080\r\n"
      "[model.\"qwen3:8b\"]\n"
      "a.'b c'.d = true",
      "file");
  ASSERT_EQ(document.entries.size(), 3U);
  EXPECT_THAT(document.entries[0].path, ElementsAre("temperature"));
  EXPECT_EQ(document.entries[0].key_at, (Position{2, 1}));
  EXPECT_EQ(document.entries[0].value_at, (Position{2, 15}));
  EXPECT_THAT(document.entries[1].path, ElementsAre("serve", "port"));
  EXPECT_THAT(document.entries[2].path, ElementsAre("model", "qwen3:8b", "a", "b c", "d"));
  ASSERT_EQ(document.tables.size(), 2U);
  EXPECT_THAT(document.tables[1].path, ElementsAre("model", "qwen3:8b"));
  EXPECT_EQ(document.tables[1].at, (Position{6, 1}));
}

TEST(Toml, ReadsValues) {
  EXPECT_EQ(text_of("8_080"), "8080");
  EXPECT_EQ(text_of("-17"), "-17");
  EXPECT_EQ(text_of("+17"), "17");
  EXPECT_EQ(text_of("0xFF"), "255");
  EXPECT_EQ(text_of("0o17"), "15");
  EXPECT_EQ(text_of("0b101"), "5");
  EXPECT_EQ(text_of("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(text_of("1e-3"), "1e-3");
  EXPECT_EQ(text_of("-0.25"), "-0.25");
  EXPECT_EQ(text_of("true"), "true");
  EXPECT_EQ(text_of(R"("a\tb\"\\\u00e9\U0001F600")"), "a\tb\"\\é😀");
  EXPECT_EQ(text_of(R"('C:\no escapes')"), R"(C:\no escapes)");
  EXPECT_EQ(text_of(R"("")"), "");
  EXPECT_EQ(text_of(R"("# no comment")"), "# no comment");
}

TEST(Toml, ReadsArraysOverSeveralLines) {
  const Entry entry = parse("stop = [ # of these\n  'a',\n  \"b\", 3,\n]\n", "file").entries.at(0);
  EXPECT_TRUE(entry.is_array);
  EXPECT_THAT(entry.values,
              ElementsAre(Scalar{Kind::string, "a"}, Scalar{Kind::string, "b"}, Scalar{Kind::integer, "3"}));
  EXPECT_TRUE(parse("stop = []", "file").entries.at(0).values.empty());
}

TEST(Toml, AnEmptyFileIsValid) {
  EXPECT_TRUE(parse("", "file").entries.empty());
  EXPECT_TRUE(parse(" \n\t# only a comment", "file").entries.empty());
}

TEST(Toml, NamesLineAndColumn) {
  EXPECT_THAT(problem_of("a = 1\nb = \"é\" x"), StartsWith("file:2:9: expected the end of the line"));
  EXPECT_THAT(problem_of("a = yes"), StartsWith("file:1:5: \"yes\" is not a value"));
  EXPECT_THAT(problem_of("a"), StartsWith("file:1:2: expected = after the key, found the end of the file"));
  EXPECT_THAT(problem_of("= 1"), StartsWith("file:1:1: expected a key"));
  EXPECT_THAT(problem_of("a = "), StartsWith("file:1:5: expected a value"));
  EXPECT_THAT(problem_of("[a"), StartsWith("file:1:3: expected ]"));
  EXPECT_THAT(problem_of("a = [1\n2]"), StartsWith("file:2:1: expected , or ]"));
  EXPECT_THAT(problem_of("a = \"b\n"), StartsWith("file:1:5: a string without its closing quote"));
  EXPECT_THAT(problem_of("a = \"\\x41\""), StartsWith("file:1:6: an unknown escape"));
}

TEST(Toml, RefusesWhatItDoesNotSupport) {
  for (const char* text : {"[[a]]", "a = {b = 1}", "a = [[1]]", "a = \"\"\"b\"\"\"", "a = '''b'''",
                           "a = 1979-05-27", "a = 07:32:00", "a = inf", "a = nan", "a = -inf"}) {
    EXPECT_THROW(parse(text, "file"), Error) << text;
  }
}

TEST(Toml, RefusesNumbersThatOthersReadDifferently) {
  for (const char* number : {"007", "1__0", "_1", "1_", "1.", ".5", "1e", "0x", "0xg", "--1", "1.5.2",
                             "9223372036854775808", "1e999", "00.5", "1_.5", "0b2"}) {
    EXPECT_THROW(parse(std::string("a = ") + number, "file"), Error) << number;
  }
}

TEST(Toml, RefusesADuplicateAndNamesTheFirst) {
  const Error error = caught_error([] { parse("a = 1\n\na = 2", "file"); });
  EXPECT_STREQ(error.what(), "file:3:1: \"a\" is defined twice");
  EXPECT_THAT(error.advice().why, HasSubstr("line 1"));
  for (const char* text : {"[a]\n[a]", "a = 1\n[a]", "[a]\nb = 1\n[a.b]", "a.b = 1\na = 2", "a.b = 1\n[a]",
                           "a = 1\na.b = 2", "[a.b]\n[a]\nb.c = 1", "\"a\" = 1\na = 2"}) {
    EXPECT_THROW(parse(text, "file"), Error) << text;
  }
  EXPECT_NO_THROW(parse("[a.b]\n[a]\nc = 1\n[a.d]\n", "file"));
  EXPECT_NO_THROW(parse("a.b = 1\na.c = 2", "file"));
}

TEST(Toml, SurvivesHostileText) {
  EXPECT_THAT(problem_of(std::string_view("a = \0", 5)), StartsWith("file:1:5: control character 0x00"));
  EXPECT_THAT(problem_of("a = '\x1b[31m'"), StartsWith("file:1:6: control character 0x1b"));
  EXPECT_THAT(problem_of("a = 1\rb = 2"), StartsWith("file:1:6: control character"));
  EXPECT_THAT(problem_of("a = '\xff'"), StartsWith("file:1:6: not UTF-8"));
  EXPECT_THAT(problem_of(R"(a = "\ud800")"), StartsWith("file:1:6: not a character"));
  EXPECT_THAT(problem_of(R"(a = "\u0000")"), StartsWith("file:1:6: not a character"));
  EXPECT_THAT(problem_of(R"(a = "\U00110000")"), StartsWith("file:1:6: not a character"));
  EXPECT_THAT(problem_of(R"("\n" = 1)"), StartsWith("file:1:1: a key with a line end"));
  EXPECT_THAT(problem_of(std::string(1000, 'k') + " = 1"), HasSubstr("more than 256 bytes"));
  EXPECT_THAT(problem_of("a.b.c.d.e.f.g.h.i = 1"), HasSubstr("more than 8 parts"));
  EXPECT_THAT(problem_of("[a.b.c.d]\na.b.c.d.e = 1"), HasSubstr("more than 8 parts"));
  EXPECT_THAT(problem_of(std::string(max_bytes + 1, '\n')), HasSubstr("larger than 1 MiB"));
  EXPECT_THAT(problem_of("a = " + std::string(100'000, '[')), HasSubstr("arrays of arrays"));
}

TEST(Toml, ReadsALargeFileQuickly) {
  std::string text = "[" + std::string(256, 'k') + "]\n";
  int keys = 0;
  for (; text.size() + 20 < max_bytes; ++keys) text += "k" + std::to_string(keys) + "=1\n";
  EXPECT_EQ(parse(text, "file").entries.size(), static_cast<std::size_t>(keys));
}

TEST(Toml, QuotesKeysThatNeedIt) {
  EXPECT_EQ(written_key("top-p"), "top-p");
  EXPECT_EQ(written_key("qwen3:8b"), "\"qwen3:8b\"");
  EXPECT_EQ(written_key(""), "\"\"");
}

}  // namespace
}  // namespace inferno::toml
