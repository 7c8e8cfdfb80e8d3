#include "cli/terminal/markdown.h"

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
  EXPECT_EQ(named("```cpp\n# **no**\n```\n**yes**"),
            "<dim>```cpp</>\n<c># **no**</>\n<dim>```</>\n<b>**yes**</>");
  EXPECT_EQ(named("~~~~\n~~~\n~~~~\nx"), "<dim>~~~~</>\n<c>~~~</>\n<dim>~~~~</>\nx");
}

TEST(Markdown, ShowsTextAsSoonAsItIsDecided) {
  Markdown markdown;
  EXPECT_EQ(markdown.push("Hel"), "Hel");
  EXPECT_EQ(markdown.push("lo *"), "lo ");  // may become emphasis
  EXPECT_EQ(markdown.push(" 3"), "* 3");
}

TEST(Markdown, NeitherLosesNorReordersAnything) {
  std::mt19937 random(7);
  const std::string letters = "ab *_`#->~.1 \n\n2)é日";
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
