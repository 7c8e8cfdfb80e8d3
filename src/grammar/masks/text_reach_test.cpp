#include "grammar/masks/text_reach.h"

#include <gtest/gtest.h>

#include <memory>
#include <string_view>
#include <utility>

#include "grammar/grammar.h"

namespace inferno::grammar {
namespace {

// How many plain and how many word characters may follow a beginning at least.
std::pair<std::uint32_t, std::uint32_t> reach_of(const std::shared_ptr<const Grammar>& grammar,
                                                 std::string_view text) {
  Explorer explorer(grammar->machine(), {});
  Explorer::Id at = explorer.start();
  for (const char byte : text) at = explorer.step(at, static_cast<std::uint8_t>(byte));
  return {text_reach(explorer, at, plain_characters()), text_reach(explorer, at, word_characters())};
}

constexpr std::uint32_t any = Counts::unbounded;

TEST(TextReach, IsWithoutEndInFreeText) {
  EXPECT_EQ(reach_of(compile_regex("[^\"]*"), ""), std::pair(any, any));
  EXPECT_EQ(reach_of(compile_regex("(a|[^a])*b"), "ab"), std::pair(any, any));
  EXPECT_EQ(reach_of(compile_schema(R"({"type":"string","pattern":"^.*b$"})"), "\"a"), std::pair(any, any));
}

TEST(TextReach, EndsWhereACharacterOfTheKindCannotStand) {
  EXPECT_EQ(reach_of(compile_regex("[0-9A-Za-z]*"), "x"), std::pair(0U, any));
  EXPECT_EQ(reach_of(compile_regex("[a-z]*"), "x"), std::pair(0U, 0U));
  EXPECT_EQ(reach_of(compile_regex("[^é]*"), "x"), std::pair(0U, any));
  EXPECT_EQ(reach_of(compile_regex("12"), "1"), std::pair(0U, 0U));
}

TEST(TextReach, CountsWhatIsBounded) {
  const auto five = compile_schema(R"({"type":"string","pattern":"^[0-9A-Za-z]{5}$"})");
  EXPECT_EQ(reach_of(five, "\"").second, 5U);
  EXPECT_EQ(reach_of(five, "\"abc").second, 2U);
  const auto words = reach_of(compile_regex("([^ ]+ ){0,3}[^ ]+"), "a");
  EXPECT_GE(words.first, 1U);
  EXPECT_LE(words.first, 4U);
  EXPECT_EQ(words.second, any);
}

}  // namespace
}  // namespace inferno::grammar
