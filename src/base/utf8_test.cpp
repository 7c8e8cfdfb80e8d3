#include "base/utf8.h"

#include <gtest/gtest.h>

#include <vector>

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

TEST(Utf8, RefusesOverlongFormsSurrogatesAndCodesAboveUnicode) {
  for (const std::string bad : {"\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xED\xA0\x80",
                                "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\x80"}) {
    EXPECT_EQ(utf8::first_invalid("12345678" + bad), 8U) << testing::PrintToString(bad);
    EXPECT_EQ(utf8::decode(bad, 0).length, 0);
  }
}

TEST(Utf8, FindsThePreviousCharacter) {
  const std::string text = "aé日😀";
  std::vector<std::size_t> begins;
  for (std::size_t at = text.size(); at > 0;) begins.push_back(at = utf8::previous(text, at));
  EXPECT_EQ(begins, (std::vector<std::size_t>{6, 3, 1, 0}));
  EXPECT_FALSE(utf8::is_continuation(text[6]));
  EXPECT_TRUE(utf8::is_continuation(text[7]));
}

TEST(Utf8, FindsAnUnfinishedCharacterAtTheEnd) {
  EXPECT_EQ(utf8::first_invalid("abc\xE6\x97"), 3U);
}

TEST(Utf8, HoldsBackOnlyAnUnfinishedCharacter) {
  std::string held = "a\xF0\x9F\x98";
  EXPECT_EQ(utf8::take_decided(held, utf8::Replacement::per_character), "a");
  EXPECT_EQ(held, "\xF0\x9F\x98");
  held += "\x80!";
  EXPECT_EQ(utf8::take_decided(held, utf8::Replacement::per_character), "😀!");
  EXPECT_TRUE(held.empty());
}

TEST(Utf8, ReplacesImpossibleBytesAtOnce) {
  std::string held = "\xF0\x9F";
  held += "x";
  EXPECT_EQ(utf8::take_decided(held, utf8::Replacement::per_character), mark + "x");
  held = "\xF5";
  EXPECT_EQ(utf8::take_decided(held, utf8::Replacement::per_character), mark);
  held = "\xED\xA0";  // a surrogate: already the second byte is impossible
  EXPECT_EQ(utf8::take_decided(held, utf8::Replacement::per_character), mark + mark);
}

TEST(Utf8, MarksEveryByteWhereTheVocabularyFallsBackToBytes) {
  std::string held = "\xE6\x97y";
  EXPECT_EQ(utf8::take_decided(held, utf8::Replacement::per_byte), mark + mark + "y");
  held = "\xE6\x97";
  EXPECT_EQ(utf8::take_all(held, utf8::Replacement::per_byte), mark + mark);
}

TEST(Utf8, GivesTheSameTextForEverySplitOfTheBytes) {
  const std::string bytes = "a\xC3\xA9\xE6\x97\xA5\xF0\x9F\x98\x80\xF0\x9F\xFF\x80z\xE6\x97";
  for (const auto replacement : {utf8::Replacement::per_character, utf8::Replacement::per_byte}) {
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

TEST(Utf8, IsValidAgreesWithTheStandard) {
  for (const char* good :
       {"", "plain", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x94\xA5", "\xED\x9F\xBF", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(utf8::is_valid(good)) << quote(good);
  }
  for (const char* bad : {"\x80", "\xC3", "\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
                          "\xF4\x90\x80\x80", "\xFF", "\xE2\x82", "a\xC3z"}) {
    EXPECT_FALSE(utf8::is_valid(bad)) << quote(bad);
  }
}

TEST(Printable, LeavesOrdinaryTextAlone) {
  EXPECT_EQ(printable("blk.0.attn_q\tÄ 漢字 🙂\n"), "blk.0.attn_q\tÄ 漢字 🙂\n");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, EscapesWhatControlsATerminal) {
  EXPECT_EQ(printable("\x1b[2J"), "\\x1b[2J");
  EXPECT_EQ(printable("a\rb\x7f"), "a\\x0db\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");           // C1: ESC [ in one character
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae");  // right-to-left override
}

TEST(Printable, EscapesBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xc3"), "\\xc3");                    // unfinished
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half of a surrogate pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

TEST(Quote, EscapesWhatControlsATerminal) {
  EXPECT_EQ(quote("model.norm"), "\"model.norm\"");
  EXPECT_EQ(quote("\x1b[2J\n"), "\"\\x1b[2J\\x0a\"");
  EXPECT_EQ(quote("\xC2\x9B"), "\"\\xc2\\x9b\"");
  EXPECT_EQ(quote("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(quote("\xFFz"), "\"\\xffz\"");
  EXPECT_EQ(quote("h\xC3\xA9"), "\"h\xC3\xA9\"");
  EXPECT_EQ(quote("\xe2\x80\xae"), "\"\\xe2\\x80\\xae\"");
}

TEST(Quote, CutsLongText) {
  const std::string cut = quote(std::string(100000, 'x'));
  EXPECT_LT(cut.size(), 110u);
  EXPECT_TRUE(cut.ends_with("...\""));
}

TEST(Trimmed, DropsBlanksAtBothEnds) {
  EXPECT_EQ(trimmed(" \t a b\r\n"), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(" \n"), "");
  EXPECT_EQ(trimmed(""), "");
  EXPECT_EQ(trimmed(" a\n", " \t"), "a\n");
}

TEST(LowerCase, ChangesAsciiLettersOnly) {
  EXPECT_EQ(lower_case("Q4_K_M"), "q4_k_m");
  EXPECT_EQ(lower_case("\u00c4Z"), "\u00c4z");
}

TEST(Shell, GetsOneWord) {
  EXPECT_EQ(shell_word("org/name@v1:Q4_K_M"), "org/name@v1:Q4_K_M");
  EXPECT_EQ(shell_word("/my models/it's"), "'/my models/it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("$HOME"), "'$HOME'");
  EXPECT_EQ(shell_quoted("plain"), "'plain'");
}

}  // namespace
}  // namespace inferno
