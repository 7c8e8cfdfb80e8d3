#include "service/kept_tokens.h"

#include <gtest/gtest.h>

namespace inferno {
namespace {

using Ids = std::vector<TokenId>;

// Bytes as they are, some pairs of letters, and two added tokens.
class Pairs : public Tokenizer {
 public:
  std::optional<Ids> encode_within(std::span<const TextSpan>, std::size_t) const override { return Ids{}; }
  std::optional<TokenId> first_control(std::string_view) const override { return std::nullopt; }
  std::vector<TokenId> add_special(std::vector<TokenId> ids) const override { return ids; }
  std::string_view bytes(TokenId token) const override { return pieces_[static_cast<std::size_t>(token)]; }
  bool is_special(TokenId token) const override { return token == end; }
  std::optional<TokenId> special(std::string_view text) const override {
    if (text == "<e>") return end;
    if (text == "<t>") return markup;
    return std::nullopt;
  }
  int size() const override { return static_cast<int>(pieces_.size()); }
  void pad_to(int) override {}
  std::optional<TokenId> bos() const override { return std::nullopt; }
  std::span<const TokenId> end_tokens() const override { return {}; }

  static constexpr TokenId a = 0, b = 1, ab = 2, aab = 3, end = 4, markup = 5, less = 6, e = 7, more = 8,
                           t = 9;

 private:
  std::vector<std::string> pieces_ = {"a", "b", "ab", "aab", "<e>", "<t>", "<", "e", ">", "t"};
};

constexpr TokenId a = Pairs::a, b = Pairs::b, ab = Pairs::ab, aab = Pairs::aab, end = Pairs::end;

Ids kept(const Ids& prompt, const Ids& before) {
  const Pairs tokenizer;
  return with_kept_tokens(tokenizer, prompt, before);
}

TEST(KeptTokens, AreThoseTheModelWrote) {
  EXPECT_EQ(kept({a, aab, end, b}, {a, a, ab, end}), (Ids{a, a, ab, end, b}));
  EXPECT_EQ(kept({ab, ab, b}, {a, b, a}), (Ids{a, b, ab, b}));  // the last "a" ends inside a token
}

TEST(KeptTokens, LeaveAPromptAloneThatBeginsOtherwise) {
  EXPECT_EQ(kept({b, a}, {a, b}), (Ids{b, a}));
  EXPECT_EQ(kept({a, b}, {}), (Ids{a, b}));
  EXPECT_EQ(kept({}, {a}), Ids{});
}

TEST(KeptTokens, StopAtTheFirstDifference) {
  EXPECT_EQ(kept({aab, b, b}, {a, ab, a, b}), (Ids{a, ab, b, b}));
}

TEST(KeptTokens, NeverMakeAControlTokenOfTextThatSpellsOne) {
  const Ids typed = {a, Pairs::less, Pairs::e, Pairs::more, b};
  EXPECT_EQ(kept(typed, {a, end, b}), typed);
  const Ids markup = {a, Pairs::less, Pairs::t, Pairs::more, b};
  EXPECT_EQ(kept(markup, {a, Pairs::markup, b}), markup);
  EXPECT_EQ(kept({a, end, b}, typed), (Ids{a, end, b}));
}

}  // namespace
}  // namespace inferno
