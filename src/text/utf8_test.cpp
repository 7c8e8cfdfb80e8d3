#include "text/utf8.h"

#include <gtest/gtest.h>

namespace inferno {
namespace {

const std::string mark = "\xEF\xBF\xBD";

TEST(Utf8, DecodesCharactersOfEveryLength) {
  const std::string text = "aé日😀";
  EXPECT_EQ(utf8::decode(text, 0).code, U'a');
  EXPECT_EQ(utf8::decode(text, 1).code, U'é');
  EXPECT_EQ(utf8::decode(text, 3).code, U'日');
  EXPECT_EQ(utf8::decode(text, 6).code, U'😀');
  EXPECT_EQ(utf8::decode(text, 6).length, 4);
}

TEST(Utf8, AppendIsTheInverseOfDecodeForEveryCharacter) {
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code == 0xD800) code = 0xE000;
    std::string text;
    utf8::append(text, code);
    ASSERT_EQ(utf8::decode(text, 0).code, code);
    ASSERT_EQ(static_cast<std::size_t>(utf8::decode(text, 0).length), text.size());
    ASSERT_EQ(utf8::length_from_first_byte(text[0]), text.size());
    ASSERT_EQ(utf8::first_invalid(text), std::nullopt);
  }
}

TEST(Utf8, RefusesOverlongFormsSurrogatesAndWhatLiesBeyondUnicode) {
  for (const std::string bad : {"\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xED\xA0\x80",
                                "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\x80"}) {
    EXPECT_EQ(utf8::first_invalid("12345678" + bad), 8U) << testing::PrintToString(bad);
    EXPECT_EQ(utf8::decode(bad, 0).length, 0);
  }
}

TEST(Utf8, FindsAnUnfinishedCharacterAtTheEnd) {
  EXPECT_EQ(utf8::first_invalid("abc\xE6\x97"), 3U);
}

TEST(Utf8, HoldsBackOnlyWhatMayStillBecomeACharacter) {
  std::string held = "a\xF0\x9F\x98";
  EXPECT_EQ(utf8::take_decided(held, Replacement::per_character), "a");
  EXPECT_EQ(held, "\xF0\x9F\x98");
  held += "\x80!";
  EXPECT_EQ(utf8::take_decided(held, Replacement::per_character), "😀!");
  EXPECT_TRUE(held.empty());
}

TEST(Utf8, ReplacesAtOnceWhatCanNeverBecomeACharacter) {
  std::string held = "\xF0\x9F";
  held += "x";
  EXPECT_EQ(utf8::take_decided(held, Replacement::per_character), mark + "x");
  held = "\xF5";
  EXPECT_EQ(utf8::take_decided(held, Replacement::per_character), mark);
  held = "\xED\xA0";  // a surrogate: already the second byte is impossible
  EXPECT_EQ(utf8::take_decided(held, Replacement::per_character), mark + mark);
}

TEST(Utf8, MarksEveryByteWhereTheVocabularyFallsBackToBytes) {
  std::string held = "\xE6\x97y";
  EXPECT_EQ(utf8::take_decided(held, Replacement::per_byte), mark + mark + "y");
  held = "\xE6\x97";
  EXPECT_EQ(utf8::take_all(held, Replacement::per_byte), mark + mark);
}

TEST(Utf8, GivesTheSameTextForEverySplitOfTheBytes) {
  const std::string bytes = "a\xC3\xA9\xE6\x97\xA5\xF0\x9F\x98\x80\xF0\x9F\xFF\x80z\xE6\x97";
  for (const auto replacement : {Replacement::per_character, Replacement::per_byte}) {
    std::string whole = bytes;
    const std::string expected = utf8::take_all(whole, replacement);
    for (std::size_t first = 0; first <= bytes.size(); ++first) {
      for (std::size_t second = first; second <= bytes.size(); ++second) {
        std::string held;
        std::string text;
        for (const auto& part :
             {bytes.substr(0, first), bytes.substr(first, second - first), bytes.substr(second)}) {
          held += part;
          const std::string decided = utf8::take_decided(held, replacement);
          EXPECT_EQ(utf8::first_invalid(decided), std::nullopt);
          text += decided;
        }
        ASSERT_EQ(text + utf8::take_all(held, replacement), expected);
      }
    }
  }
}

}  // namespace
}  // namespace inferno
