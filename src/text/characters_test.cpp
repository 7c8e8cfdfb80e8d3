#include "text/characters.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace inferno {
namespace {

std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> found;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = next_character(text, at);
    found.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return found;
}

TEST(Display, CutsTextWhereAReaderWould) {
  EXPECT_EQ(characters("aß日"), (std::vector<std::string>{"a", "ß", "日"}));
  EXPECT_EQ(characters("e\u0301x"), (std::vector<std::string>{"e\u0301", "x"}));
  EXPECT_EQ(characters("👩‍👧!"), (std::vector<std::string>{"👩‍👧", "!"}));
  EXPECT_EQ(characters("🇩🇪🇫🇷"), (std::vector<std::string>{"🇩🇪", "🇫🇷"}));
}

TEST(Display, GoesBackToTheSameBorders) {
  const std::string text = "a👩‍👧\ne\u0301日🇩🇪🇫🇷";
  std::vector<std::size_t> forth, back;
  for (std::size_t at = 0; at < text.size(); at = next_character(text, at)) forth.push_back(at);
  for (std::size_t at = text.size(); at > 0;) back.push_back(at = previous_character(text, at));
  EXPECT_EQ(forth, std::vector<std::size_t>(back.rbegin(), back.rend()));
  EXPECT_EQ(previous_character(text, 0), 0u);
}

TEST(Display, CountsColumns) {
  EXPECT_EQ(columns("abc"), 3);
  EXPECT_EQ(columns("日本"), 4);
  EXPECT_EQ(columns("e\u0301"), 1);
  EXPECT_EQ(columns("👩‍👧"), 2);
  EXPECT_EQ(columns("🇩🇪"), 2);
  EXPECT_EQ(columns(""), 0);
}

TEST(Display, TakesBrokenBytesOneByOne) {
  EXPECT_EQ(characters("a\xff\xc3"), (std::vector<std::string>{"a", "\xff", "\xc3"}));
  EXPECT_EQ(columns("\xff"), 1);
}

}  // namespace
}  // namespace inferno
