#include "text/added_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace inferno {
namespace {

using testing::ElementsAre;

// "text" for text, "#7:text" for token 7 and the text it matched.
std::vector<std::string> split(const AddedTokenMatcher& matcher, const std::string& text,
                               const Ranges& user = {}) {
  std::vector<std::string> parts;
  for (const TextPart& part : matcher.split(text, user)) {
    const std::string content = text.substr(part.range.begin, part.range.end - part.range.begin);
    parts.push_back(part.token ? "#" + std::to_string(*part.token) + ":" + content : content);
  }
  return parts;
}

TEST(AddedTokens, AreFoundLeftmostAndLongest) {
  const AddedTokenMatcher matcher(
      {{.id = 1, .content = "<a>"}, {.id = 2, .content = "<a><b>"}, {.id = 3, .content = "b>x"}});
  EXPECT_THAT(split(matcher, "x<a>y<a><b>x"), ElementsAre("x", "#1:<a>", "y", "#2:<a><b>", "x"));
  EXPECT_THAT(split(matcher, ""), ElementsAre());
  EXPECT_THAT(split(AddedTokenMatcher(), "abc"), ElementsAre("abc"));
}

TEST(AddedTokens, TakeWhiteSpaceOnTheSidesTheyStrip) {
  const AddedTokenMatcher matcher(
      {{.id = 1, .content = "<l>", .lstrip = true}, {.id = 2, .content = "<r>", .rstrip = true}});
  EXPECT_THAT(split(matcher, "a \xC2\xA0<l> b"), ElementsAre("a", "#1: \xC2\xA0<l>", " b"));
  EXPECT_THAT(split(matcher, "a <r>\n b"), ElementsAre("a ", "#2:<r>\n ", "b"));
  EXPECT_THAT(split(matcher, "<r>  <l>"), ElementsAre("#2:<r>  ", "#1:<l>"));
}

TEST(AddedTokens, SingleWordsMustNotTouchLettersOrDigits) {
  const AddedTokenMatcher matcher({{.id = 1, .content = "dad", .single_word = true}});
  EXPECT_THAT(split(matcher, "dad, granddad dad1 édad dad"),
              ElementsAre("#1:dad", ", granddad dad1 édad ", "#1:dad"));
}

TEST(AddedTokens, AUserCannotWriteControlTokens) {
  const AddedTokenMatcher matcher({{.id = 1, .content = "<|end|>", .special = true},
                                   {.id = 2, .content = "<tool_call>"},
                                   {.id = 3, .content = "  "}});
  const std::string text = "a  <|end|><tool_call>";
  EXPECT_THAT(split(matcher, text), ElementsAre("a", "#3:  ", "#1:<|end|>", "#2:<tool_call>"));
  EXPECT_THAT(split(matcher, text, {{.begin = 0, .end = text.size()}}),
              ElementsAre("a", "#3:  ", "<|end|><tool_call>"));
}

TEST(AddedTokens, AControlTokenMustLieInTrustedTextEntirely) {
  const AddedTokenMatcher matcher({{.id = 1, .content = "<|end|>", .special = true}});
  // The user typed the first half, the template continues with the second, then ends the turn.
  const std::string text =
      "<|e"
      "nd|>"
      "<|end|>";
  EXPECT_THAT(split(matcher, text, {{.begin = 0, .end = 3}}), ElementsAre("<|end|>", "#1:<|end|>"));
  EXPECT_THAT(split(matcher, text, {{.begin = 6, .end = 7}}), ElementsAre("<|end|>", "#1:<|end|>"));
  EXPECT_THAT(split(matcher, text, {{.begin = 7, .end = 8}}), ElementsAre("#1:<|end|>", "<|end|>"));
}

TEST(AddedTokens, AForgedTokenDoesNotHideTheTrueOneBehindIt) {
  const AddedTokenMatcher matcher(
      {{.id = 1, .content = "<e>", .special = true}, {.id = 2, .content = "<<e>", .special = true}});
  EXPECT_THAT(split(matcher, "<<e>", {{.begin = 0, .end = 1}}), ElementsAre("<", "#1:<e>"));
}

}  // namespace
}  // namespace inferno
