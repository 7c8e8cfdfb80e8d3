#include "text/models/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace inferno {
namespace {

using testing::ElementsAre;
using Ids = std::vector<TokenId>;

Vocabulary vocabulary(const std::vector<std::string>& pieces) {
  Vocabulary all(static_cast<int>(pieces.size()), pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) all.add(static_cast<TokenId>(i), pieces[i]);
  return all;
}

Ids encode(const Bpe& bpe, std::string_view text) {
  Ids ids;
  bpe.encode(ids, text);
  return ids;
}

TEST(Bpe, MergesTheBestRankFirstAndTheLeftmostOfEqualOnes) {
  MergeTable merges;
  merges.add(0, 1, 3, 1);  // a b
  merges.add(1, 2, 4, 0);  // b c, better
  merges.add(0, 0, 5, 2);  // a a
  const Bpe bpe(vocabulary({"a", "b", "c", "ab", "bc", "aa"}), merges, {});
  EXPECT_THAT(encode(bpe, "abc"), ElementsAre(0, 4));
  EXPECT_THAT(encode(bpe, "ab"), ElementsAre(3));
  EXPECT_THAT(encode(bpe, "aaa"), ElementsAre(5, 0));
}

TEST(Bpe, AWholePieceStillHasToComeOutOfMergesUnlessTheyAreIgnored) {
  const auto pieces = [] { return vocabulary({"a", "b", "ab"}); };
  const Bpe merging(pieces(), MergeTable(), {});
  EXPECT_THAT(encode(merging, "ab"), ElementsAre(0, 1));
  EXPECT_THAT(encode(merging, "ab"), ElementsAre(0, 1));  // also from the cache
  const Bpe ignoring(pieces(), MergeTable(), {.ignore_merges = true, .unknown = {}});
  EXPECT_THAT(encode(ignoring, "ab"), ElementsAre(2));
}

TEST(Bpe, FallsBackToBytesThenToTheUnknownTokenThenToNothing) {
  EXPECT_THAT(
      encode(Bpe(vocabulary({"a", "<0xC3>", "<0xA9>"}), MergeTable(), {.byte_fallback = true, .unknown = {}}),
             "aé"),
      ElementsAre(0, 1, 2));
  // One of the two bytes is missing: the character is unknown.
  EXPECT_THAT(
      encode(Bpe(vocabulary({"a", "<0xC3>", "?"}), MergeTable(), {.byte_fallback = true, .unknown = 2}),
             "aé"),
      ElementsAre(0, 2));
  EXPECT_THAT(encode(Bpe(vocabulary({"a"}), MergeTable(), {}), "éaé"), ElementsAre(0));
}

TEST(Bpe, FusesNeighbouringUnknownCharactersWhenAsked) {
  const auto pieces = [] { return vocabulary({"?", "a"}); };
  EXPECT_THAT(encode(Bpe(pieces(), MergeTable(), {.fuse_unknown = true, .unknown = 0}), "éèaê"),
              ElementsAre(0, 1, 0));
  EXPECT_THAT(encode(Bpe(pieces(), MergeTable(), {.fuse_unknown = false, .unknown = 0}), "éèa"),
              ElementsAre(0, 0, 1));
}

TEST(Bpe, StartsFromBytesWhenByteLevel) {
  MergeTable merges;
  merges.add(0, 1, 2, 0);
  const Bpe bpe(vocabulary({"\xC3", "\xA9", "é"}), merges, {.byte_level = true, .unknown = {}});
  EXPECT_THAT(encode(bpe, "éé"), ElementsAre(2, 2));
}

TEST(Bpe, CuttingAtWordStartsChangesNothing) {
  // ▁ a b ▁a ▁▁ ab ▁ab
  MergeTable merges;
  merges.add(0, 0, 4, 0);
  merges.add(0, 1, 3, 1);
  merges.add(1, 2, 5, 2);
  merges.add(3, 2, 6, 3);
  const auto pieces = [] { return vocabulary({"▁", "a", "b", "▁a", "▁▁", "ab", "▁ab"}); };
  const Bpe whole(pieces(), merges, {});
  const Bpe cut(pieces(), merges, {}, "▁");
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (auto i = random() % 12 + 1; i > 0; --i) text += std::array{"▁", "a", "b"}[random() % 3];
    ASSERT_EQ(encode(cut, text), encode(whole, text)) << text;
  }
}

// Merging, written as simply as possible.
Ids merge_slowly(Ids symbols, const MergeTable& merges) {
  while (true) {
    std::uint64_t best = FlatMap::none;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const std::uint64_t merge = merges.find(symbols[i], symbols[i + 1]);
      if (merge != FlatMap::none && (best == FlatMap::none || merge >> 32 < best >> 32)) {
        best = merge;
        at = i;
      }
    }
    if (best == FlatMap::none) return symbols;
    symbols[at] = static_cast<TokenId>(best & 0xFFFFFFFF);
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

TEST(MergeSymbols, ShortAndLongWordsAgreeWithTheDefinition) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    // A random but consistent set of merges: every pair has one result, larger than its parts.
    MergeTable merges;
    TokenId next = 4;
    for (std::uint32_t rank = 0; rank < 40; ++rank) {
      const auto pick = [&] { return static_cast<TokenId>(random() % static_cast<unsigned>(next)); };
      merges.add(pick(), pick(), next++, rank / 2);
    }
    for (const std::size_t length : {2U, 5U, 48U, 49U, 200U}) {
      Ids symbols(length + 1, 99);  // the first symbol must stay unchanged
      for (std::size_t i = 1; i < symbols.size(); ++i) symbols[i] = static_cast<TokenId>(random() % 4);
      Ids expected = merge_slowly(Ids(symbols.begin() + 1, symbols.end()), merges);
      expected.insert(expected.begin(), 99);
      merge_symbols(symbols, 1, merges);
      ASSERT_EQ(symbols, expected);
    }
  }
}

}  // namespace
}  // namespace inferno
