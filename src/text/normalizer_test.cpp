#include "text/normalizer.h"

#include <gtest/gtest.h>

#include <chrono>

#include "base/error.h"

namespace inferno {
namespace {

std::string apply(std::vector<NormalizerStep> steps, std::string_view text) {
  RegexScratch scratch;
  return Normalizer(std::move(steps)).apply(text, scratch);
}

TEST(UnicodeForms, ComposeAndDecompose) {
  EXPECT_EQ(to_form("e\xCC\x81t\xC3\xA9", UnicodeForm::nfc), "été");
  EXPECT_EQ(to_form("été", UnicodeForm::nfd), "e\xCC\x81te\xCC\x81");
  EXPECT_EQ(to_form("ﬁ①", UnicodeForm::nfkc), "fi1");
  EXPECT_EQ(to_form("ﬁé", UnicodeForm::nfkd), "fie\xCC\x81");
  EXPECT_EQ(to_form("가", UnicodeForm::nfd), "\xE1\x84\x80\xE1\x85\xA1");
  EXPECT_EQ(to_form("\xE1\x84\x80\xE1\x85\xA1", UnicodeForm::nfc), "가");
}

TEST(UnicodeForms, SortCombiningMarks) {
  // The mark below (220) comes before the mark above (230), in any input order.
  EXPECT_EQ(to_form("x\xCC\x81\xCC\xA3", UnicodeForm::nfc), "x\xCC\xA3\xCC\x81");
}

TEST(UnicodeForms, LeavePlainStretchesAloneAndComposeAcrossTheirEdge) {
  EXPECT_EQ(to_form("plain café ÀÉ plain e\xCC\x81", UnicodeForm::nfc), "plain café ÀÉ plain é");
  EXPECT_EQ(to_form("", UnicodeForm::nfc), "");
  EXPECT_EQ(to_form("\xCC\x81", UnicodeForm::nfc), "\xCC\x81");
}

TEST(UnicodeForms, TakeLinearTimeForNothingButMarks) {
  std::string marks;
  for (int i = 0; i < 150000; ++i) marks += i % 2 == 0 ? "\xCC\x81" : "\xCC\xA3";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(to_form(marks, UnicodeForm::nfc).size(), marks.size());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(Normalizer, AppliesItsStepsInOrder) {
  EXPECT_EQ(apply({normalize::Prepend{"▁"}, normalize::ReplaceText{" ", "▁"}}, "a b"), "▁a▁b");
  EXPECT_EQ(apply({normalize::ToForm{UnicodeForm::nfd}, normalize::StripAccents{}}, "Éa"), "Ea");
}

TEST(Normalizer, PrependsNothingToNothing) {
  EXPECT_EQ(apply({normalize::Prepend{"▁"}}, ""), "");
}

TEST(Normalizer, StripsWhiteSpaceAtTheSidesAskedFor) {
  EXPECT_EQ(apply({normalize::Strip{.left = true, .right = true}}, " \xE3\x80\x80 a b \n"), "a b");
  EXPECT_EQ(apply({normalize::Strip{.left = true, .right = false}}, " a "), "a ");
  EXPECT_EQ(apply({normalize::Strip{.left = true, .right = true}}, "  "), "");
}

TEST(Normalizer, LowersCaseAsUnicodeDoes) {
  EXPECT_EQ(apply({normalize::Lowercase{}}, "ÀΣİX"), "àσi\xCC\x87x");
}

TEST(Normalizer, ReplacesMatchesOfAPattern) {
  const auto spaces = std::make_shared<const Regex>(" {2,}", "test");
  EXPECT_EQ(apply({normalize::ReplacePattern{spaces, " "}}, "a   b  c d"), "a b c d");
}

TEST(Normalizer, RefusesToBlowAFewBytesUpToGigabytes) {
  const std::string huge(1 << 20, 'x');
  EXPECT_THROW(apply({normalize::ReplaceText{"a", huge}}, std::string(3000, 'a')), Error);
}

}  // namespace
}  // namespace inferno
