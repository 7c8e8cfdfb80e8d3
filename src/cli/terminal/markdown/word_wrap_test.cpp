#include "cli/terminal/markdown/word_wrap.h"

#include <gtest/gtest.h>

#include <random>

#include "cli/terminal/styled_text.h"

namespace inferno::terminal {
namespace {

TEST(WordWrap, BreaksBetweenWords) {
  EXPECT_EQ(wrapped("one two three four", 9), "one two\nthree\nfour");
  EXPECT_EQ(wrapped("exactly ten fits", 11), "exactly ten\nfits");
  EXPECT_EQ(wrapped("a b\n\nc  d \n", 80), "a b\n\nc  d \n");
  EXPECT_EQ(wrapped("one two three", 0), "one two three");
}

TEST(WordWrap, LeavesAWordThatIsWiderThanTheScreenToTheTerminal) {
  EXPECT_EQ(wrapped("see abcdefghijklmno now", 10), "see\nabcdefghijklmno now");
}

TEST(WordWrap, BreaksBetweenWideCharactersButNotBeforeClosingPunctuation) {
  EXPECT_EQ(wrapped("日本語日本語", 5), "日本\n語日\n本語");
  EXPECT_EQ(wrapped("日本語。", 6), "日本\n語。");
  EXPECT_EQ(wrapped("日。", 3), "日。");
  EXPECT_EQ(wrapped("ab日本 cd", 6), "ab日本\ncd");
}

TEST(WordWrap, IndentsRowsOfAListItem) {
  EXPECT_EQ(wrapped("- one two three", 9), "- one two\n  three");
  EXPECT_EQ(wrapped("  12. one two three", 13), "  12. one two\n      three");
  EXPECT_EQ(wrapped("    one two", 9), "    one\n    two");
}

TEST(WordWrap, StylesTakeNoColumnsAndStayWithTheirWord) {
  WordWrap wrap(9);
  wrap.push("one ");
  wrap.style("\x1b[1m");
  wrap.push("two");
  wrap.style("\x1b[0m");
  wrap.push(" three");
  EXPECT_EQ(wrap.finish(), "one \x1b[1mtwo\x1b[0m\nthree");
}

TEST(WordWrap, LeavesKeptLinesAlone) {
  WordWrap wrap(9);
  wrap.push("one two ");
  wrap.keep_line();
  wrap.push("three four\nfive six seven");
  EXPECT_EQ(wrap.finish(), "one two three four\nfive six\nseven");
}

TEST(WordWrap, ShowsWordsAsSoonAsTheyAreDecided) {
  WordWrap wrap(9);
  wrap.push("Hel");
  EXPECT_EQ(wrap.take(), "Hel");  // nothing could move it to another row
  wrap.push("lo wor");
  EXPECT_EQ(wrap.take(), "lo");
  wrap.push("ld");
  EXPECT_EQ(wrap.take(), "");
  wrap.push(" ");
  EXPECT_EQ(wrap.take(), "\nworld");
}

// However the text arrives, its words come in order, and no row is too wide unless one word is.
TEST(WordWrap, LosesNothing) {
  std::mt19937 random(3);
  const std::vector<std::string> pieces = {"a", "bc", "def ",         " ", "\n", "日", "。",
                                           "é", "- ", "👩‍👧 ", "x."};
  for (int scene = 0; scene < 2000; ++scene) {
    std::string text;
    for (auto count = random() % 40; count > 0; --count) text += pieces[random() % pieces.size()];
    const int columns = static_cast<int>(8 + random() % 20);
    const std::string whole = wrapped(text, columns);
    WordWrap wrap(columns);
    std::string bytewise;
    for (const char byte : text) {
      wrap.push({&byte, 1});
      bytewise += wrap.take();
    }
    bytewise += wrap.finish();
    ASSERT_EQ(bytewise, whole) << text;
    const auto squeezed = [](std::string from) {
      std::erase_if(from, [](char byte) { return byte == ' ' || byte == '\n'; });
      return from;
    };
    ASSERT_EQ(squeezed(whole), squeezed(text));
  }
}

}  // namespace
}  // namespace inferno::terminal
