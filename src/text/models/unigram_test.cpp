#include "text/models/unigram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace inferno {
namespace {

using testing::ElementsAre;

std::vector<TokenId> encode(const Unigram& model, std::string_view text) {
  std::vector<TokenId> ids;
  model.encode(ids, text);
  return ids;
}

TEST(Unigram, ChoosesTheBestSumOfScores) {
  const std::vector<UnigramPiece> pieces = {{"<unk>", 0}, {"a", 0},  {"b", 0},   {"c", 0},    {"d", 0},
                                            {"cd", 1},    {"ab", 2}, {"abc", 5}, {"abcd", 10}};
  EXPECT_THAT(encode(Unigram(pieces, 0, false), "abcd"), ElementsAre(8));
  const std::vector<UnigramPiece> other = {{"<unk>", 0},     {"ab", 0},   {"cd", -0.1}, {"abc", -0.2},
                                           {"a", -0.3},      {"b", -0.4}, {"c", -0.5},  {"ABC", -0.5},
                                           {"abcdabcd", 20}, {"q", 20.5}, {"r", 20.5},  {"qr", -0.5}};
  const Unigram model(other, 0, false);
  EXPECT_THAT(encode(model, "abc"), ElementsAre(3));
  EXPECT_THAT(encode(model, "abcd"), ElementsAre(1, 2));
  EXPECT_THAT(encode(model, "abcc"), ElementsAre(3, 6));
  EXPECT_THAT(encode(model, "qr"), ElementsAre(9, 10));
  EXPECT_THAT(encode(model, "xabcabaabcdd"), ElementsAre(0, 3, 1, 4, 1, 2, 0));
}

TEST(Unigram, FusesUnknownCharactersAndFallsBackToBytes) {
  const std::vector<UnigramPiece> pieces = {{"<unk>", 0}, {"a", -1}, {"<0xC3>", -2}, {"<0xA9>", -2}};
  EXPECT_THAT(encode(Unigram(pieces, 0, false), "aééa"), ElementsAre(1, 0, 1));
  EXPECT_THAT(encode(Unigram(pieces, 0, true), "aéa"), ElementsAre(1, 2, 3, 1));
  EXPECT_THAT(encode(Unigram(pieces, 0, true), "aèa"), ElementsAre(1, 0, 1));
  EXPECT_THROW(encode(Unigram(pieces, std::nullopt, false), "é"), Error);
}

TEST(Unigram, TextNeverBecomesAControlToken) {
  const std::vector<UnigramPiece> pieces = {{"<unk>", 0}, {"</s>", 0, false}, {"<", -3},
                                            {"/", -3},    {"s", -3},          {">", -3}};
  EXPECT_THAT(encode(Unigram(pieces, 0, false), "</s>"), ElementsAre(2, 3, 4, 5));
}

}  // namespace
}  // namespace inferno
