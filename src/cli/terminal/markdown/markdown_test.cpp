#include "cli/terminal/markdown/markdown.h"

#include <gtest/gtest.h>

#include <random>
#include <regex>

namespace inferno::terminal {
namespace {

std::string rendered(std::string_view text) {
  Markdown markdown;
  std::string out = markdown.push(text);
  return out + markdown.finish();
}

// Escape sequences by name, so that expectations can be read.
std::string named(std::string_view text) {
  std::string out = rendered(text);
  for (const auto& [code, name] : std::vector<std::pair<std::string, std::string>>{{"\x1b[0m", "</>"},
                                                                                   {"\x1b[1m", "<b>"},
                                                                                   {"\x1b[2m", "<dim>"},
                                                                                   {"\x1b[3m", "<i>"},
                                                                                   {"\x1b[4m", "<u>"},
                                                                                   {"\x1b[35m", "<key>"},
                                                                                   {"\x1b[36m", "<c>"}}) {
    for (std::size_t at = out.find(code); at != std::string::npos; at = out.find(code)) {
      out.replace(at, code.size(), name);
    }
  }
  return out;
}

std::string without_escapes(const std::string& text) {
  static const std::regex escape("\x1b\\[[0-9;]*m");
  return std::regex_replace(text, escape, "");
}

TEST(Markdown, LeavesPlainTextAlone) {
  EXPECT_EQ(rendered("Once upon a time, 2 * 3 = 6.\nThe end."), "Once upon a time, 2 * 3 = 6.\nThe end.");
  EXPECT_EQ(rendered("snake_case_name and 2**3 and a*b"), "snake_case_name and 2**3 and a*b");
}

TEST(Markdown, StylesHeadingsAndLists) {
  EXPECT_EQ(named("## Title\ntext"), "<b>## Title</>\ntext");
  EXPECT_EQ(named("- one\n  12. two"), "<c>- </>one\n<c>  12. </>two");
  EXPECT_EQ(named("#hashtag\n-5 degrees\n1999 was"), "#hashtag\n-5 degrees\n1999 was");
}

TEST(Markdown, StylesEmphasisAndCode) {
  EXPECT_EQ(named("a **bold** word"), "a <b>**bold**</> word");
  EXPECT_EQ(named("*it* `a*b*c`"), "<i>*it*</> <c>`a*b*c`</>");
  EXPECT_EQ(named("***both***"), "<b><i>***both***</>");
}

TEST(Markdown, EndsAStyleThatWasNeverClosedWithItsLine) {
  EXPECT_EQ(named("**open\nnext"), "<b>**open</>\nnext");
  EXPECT_EQ(named("`open\nnext"), "<c>`open</>\nnext");
}

TEST(Markdown, LeavesCodeBlocksUntouched) {
  EXPECT_EQ(named("```text\n# **no**\n```\n**yes**"),
            "<dim>```text</>\n<c># **no**</>\n<dim>```</>\n<b>**yes**</>");
  EXPECT_EQ(named("~~~~\n~~~\n~~~~\nx"), "<dim>~~~~</>\n<c>~~~</>\n<dim>~~~~</>\nx");
}

TEST(Markdown, ColoursCodeOfAKnownLanguage) {
  EXPECT_EQ(named("```cpp\nreturn 1;\n```\nreturn"),
            "<dim>```cpp</>\n<key>return</> <c>1</>;\n<dim>```</>\nreturn");
}

TEST(Markdown, StylesLinksAndShowsWhereTheyLead) {
  EXPECT_EQ(named("see [the page](https://a.b) now"), "see <u>[the page]</><dim>(https://a.b)</> now");
  EXPECT_EQ(named("- [x] done, a[1] (b) [open"), "<c>- </>[x] done, a[1] (b) [open");
  EXPECT_EQ(named("[**a**] [**b**"), "[<b>**a**</>] [<b>**b**</>");
}

TEST(Markdown, AlignsTablesWhenTheyEnd) {
  Markdown markdown(no_theme, 40);
  EXPECT_EQ(markdown.push("|a|size|\n|-|-:|\n|long cell|1|"), "");
  EXPECT_EQ(markdown.push("\nend"), "| a         | size |\n| --------- | ---: |\n| long cell |    1 |\nend");
  EXPECT_EQ(markdown.finish(), "");
  EXPECT_EQ(named("|a|\n|-|\n|**b**|\n"), "<b>| a     |</>\n| ----- |\n| <b>**b**</> |\n");
  EXPECT_EQ(rendered("|a|\n|b|\n\n|c|"), "|a|\n|b|\n\n|c|");
  EXPECT_EQ(rendered("x | y\n||\n"), "x | y\n||\n");
}

TEST(Markdown, BreaksParagraphsButNeitherCodeNorTables) {
  Markdown markdown(no_theme, 12);
  const std::string text = "- one two three\n```\none two three four\n```\n|one two|three four|\n|-|-|\n";
  const std::string shown = markdown.push(text);
  EXPECT_EQ(shown + markdown.finish(),
            "- one two\n  three\n```\none two three four\n```\n|one two|three four|\n|-|-|\n");
}

TEST(Markdown, ShowsTextAsSoonAsItIsDecided) {
  Markdown markdown;
  EXPECT_EQ(markdown.push("Hel"), "Hel");
  EXPECT_EQ(markdown.push("lo *"), "lo ");  // may become emphasis
  EXPECT_EQ(markdown.push(" 3"), "* 3");
}

TEST(Markdown, NeitherLosesNorReordersAnything) {
  std::mt19937 random(7);
  const std::string letters = "ab *_`#->~.1 \n\n2)[](é日";
  for (int scene = 0; scene < 3000; ++scene) {
    std::string text;
    for (auto count = random() % 60; count > 0; --count) text += letters[random() % letters.size()];
    const std::string whole = rendered(text);
    ASSERT_EQ(without_escapes(whole), text);
    Markdown markdown;
    std::string pieces;
    for (const char byte : text) pieces += markdown.push({&byte, 1});
    pieces += markdown.finish();
    ASSERT_EQ(pieces, whole) << text;
    ASSERT_TRUE(whole.rfind("\x1b[0m") == std::string::npos
                    ? whole.find('\x1b') == std::string::npos
                    : whole.find('\x1b', whole.rfind("\x1b[0m") + 1) == std::string::npos)
        << "a style is left on: " << text;
  }
}

}  // namespace
}  // namespace inferno::terminal
