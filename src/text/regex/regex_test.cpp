#include "text/regex/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "base/error.h"

namespace inferno {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> matches(const std::string& pattern, const std::string& text) {
  const Regex regex(pattern, "test");
  RegexScratch scratch;
  RegexScan scan(regex, text, scratch);
  std::vector<std::string> found;
  while (const auto match = scan.next())
    found.push_back(text.substr(match->begin, match->end - match->begin));
  return found;
}

std::string refusal(const std::string& pattern, ErrorKind kind) {
  try {
    const Regex regex(pattern, "the field");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  return "accepted";
}

TEST(Regex, FindsMatchesFromLeftToRight) {
  EXPECT_THAT(matches("\\p{L}+|\\p{N}{1,3}", "ab 12345é"), ElementsAre("ab", "123", "45", "é"));
}

TEST(Regex, WhiteSpaceIsUnicodesAndNotPcres) {
  EXPECT_THAT(matches("\\s+", "a\xC2\xA0\xE3\x80\x80\xC2\x85z"), ElementsAre("\xC2\xA0\xE3\x80\x80\xC2\x85"));
  const std::string mongolian_separator = "\xE1\xA0\x8E";
  EXPECT_THAT(matches("\\s", mongolian_separator), ElementsAre());
  EXPECT_THAT(matches("\\S", mongolian_separator), ElementsAre(mongolian_separator));
  EXPECT_THAT(matches("[^\\s\\p{L}]", mongolian_separator), ElementsAre(mongolian_separator));
  EXPECT_THAT(matches("[\\S]", " \xE2\x80\xA8x"), ElementsAre("x"));
}

TEST(Regex, WordCharactersIncludeMarks) {
  EXPECT_THAT(matches("\\w+", "e\xCC\x81_1 +"), ElementsAre("e\xCC\x81_1"));
  EXPECT_THAT(matches("\\W+", "a +-b"), ElementsAre(" +-"));
  EXPECT_THAT(matches("\\b\\p{L}", "ab cd"), ElementsAre("a", "c"));
  EXPECT_THAT(matches("\\p{L}\\B", "ab"), ElementsAre("a"));
}

TEST(Regex, APlusBehindAnIntervalRepeatsIt) {
  EXPECT_THAT(matches("\\p{N}{1,3}+", "12345"), ElementsAre("12345"));
  EXPECT_THAT(matches("(?:ab){2}+", "abababab"), ElementsAre("abababab"));
  EXPECT_THAT(matches("x{2}?", "x"), ElementsAre("", ""));
  EXPECT_THAT(matches("a{,2}b", "aaab"), ElementsAre("aab"));
  EXPECT_THAT(matches("a{1,2}?", "aa"), ElementsAre("a", "a"));
  EXPECT_THAT(matches("a{b", "a{b"), ElementsAre("a{b"));
}

TEST(Regex, PossessiveQuantifiersStayPossessive) {
  EXPECT_THAT(matches("a++a", "aaa"), ElementsAre());
}

TEST(Regex, ScriptsAreNotScriptExtensions) {
  const std::string extended = "\xE3\x80\x81";  // an ideographic comma: common, but used with Han
  EXPECT_THAT(matches("\\p{Han}", "日" + extended), ElementsAre("日"));
  EXPECT_THAT(matches("\\p{Uppercase_Letter}", "aB"), ElementsAre("B"));
  EXPECT_THAT(matches("\\p{^L}", "a1"), ElementsAre("1"));
}

TEST(Regex, NestedClassesAreUnions) {
  EXPECT_THAT(matches(" ?[^(\\s|[.,!?])]+", "Hi there. (x)"), ElementsAre("Hi", " there", "x"));
}

TEST(Regex, DollarStandsAtEveryLine) {
  EXPECT_THAT(matches("\\s+$", "a \nb "), ElementsAre(" ", " "));
}

TEST(Regex, DotMatchesLineEndsUnderRubysM) {
  EXPECT_THAT(matches("(?m:a.b)", "a\nb"), ElementsAre("a\nb"));
  EXPECT_THAT(matches("a.b", "a\nb"), ElementsAre());
}

TEST(Regex, CodePointsMayBeWrittenInHexadecimal) {
  EXPECT_THAT(matches("[\\u4e00-\\u9fa5]+", "a日本"), ElementsAre("日本"));
}

TEST(Regex, EmptyMatchesEndAndAreFoundOncePerPlace) {
  EXPECT_THAT(matches("(?=b)", "abab"), ElementsAre("", ""));
  EXPECT_THAT(matches("x*", "é"), ElementsAre("", ""));
}

TEST(Regex, RefusesWhatItCannotTranslate) {
  EXPECT_THAT(refusal("[a-z&&[^b]]", ErrorKind::unsupported),
              HasSubstr("the field: pattern \"[a-z&&[^b]]\": an intersection"));
  EXPECT_THAT(refusal("[a[^b]]", ErrorKind::unsupported), HasSubstr("negated class inside a class"));
  EXPECT_THAT(refusal("\\X", ErrorKind::unsupported), HasSubstr("\\X"));
  EXPECT_THAT(refusal("[abc", ErrorKind::unsupported), HasSubstr("without an end"));
  EXPECT_THAT(refusal(std::string(70000, 'a'), ErrorKind::unsupported), HasSubstr("70000 bytes"));
}

TEST(Regex, NamesWhatIsWrongInAPattern) {
  EXPECT_THAT(refusal("(a", ErrorKind::corrupt),
              HasSubstr("the field: pattern \"(a\" is invalid near \"\": missing"));
  EXPECT_THAT(refusal("a{2,1}", ErrorKind::corrupt), HasSubstr("invalid"));
  EXPECT_THAT(refusal("\\p{Klingon}", ErrorKind::corrupt), HasSubstr("unknown property"));
}

TEST(Regex, AHostilePatternEndsInAnError) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(matches("(a+)+$", std::string(3000, 'a') + "b"), Error);
  EXPECT_THROW(matches("(a|aa)+$", std::string(3000, 'a') + "b"), Error);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

}  // namespace
}  // namespace inferno
