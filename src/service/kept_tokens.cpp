#include "service/kept_tokens.h"

#include <algorithm>

namespace inferno {
namespace {

bool is_added(const Tokenizer& tokenizer, TokenId token) {
  return tokenizer.is_special(token) || tokenizer.special(tokenizer.bytes(token)) == token;
}

// Walks through the bytes of a token sequence.
class Walker {
 public:
  Walker(const Tokenizer& tokenizer, std::span<const TokenId> tokens)
      : tokenizer_(tokenizer), tokens_(tokens) {}

  std::size_t passed() const { return next_; }       // number of tokens begun
  bool is_between() const { return rest_.empty(); }  // at the end of a token
  bool is_over() const { return rest_.empty() && next_ == tokens_.size(); }
  std::string_view rest() const { return rest_; }  // unread bytes of the current token
  TokenId token() const { return tokens_[next_ - 1]; }

  // Begins the next token if the current one is used up.
  void enter() {
    if (rest_.empty()) rest_ = tokenizer_.bytes(tokens_[next_++]);
  }
  void skip(std::size_t bytes) { rest_.remove_prefix(bytes); }

 private:
  const Tokenizer& tokenizer_;
  std::span<const TokenId> tokens_;
  std::size_t next_ = 0;
  std::string_view rest_;
};

}  // namespace

std::vector<TokenId> with_kept_tokens(const Tokenizer& tokenizer, const std::vector<TokenId>& prompt,
                                      std::span<const TokenId> before) {
  Walker old_walk(tokenizer, before), new_walk(tokenizer, prompt);
  std::size_t old_kept = 0, new_kept = 0;  // token counts at the last common boundary
  while (!old_walk.is_over() && !new_walk.is_over()) {
    const bool aligned = old_walk.is_between() && new_walk.is_between();
    old_walk.enter();
    new_walk.enter();
    const bool same = aligned && old_walk.token() == new_walk.token();
    if (!same && (is_added(tokenizer, old_walk.token()) || is_added(tokenizer, new_walk.token()))) break;
    const std::size_t bytes = std::min(old_walk.rest().size(), new_walk.rest().size());
    if (old_walk.rest().substr(0, bytes) != new_walk.rest().substr(0, bytes)) break;
    old_walk.skip(bytes);
    new_walk.skip(bytes);
    if (!old_walk.is_between() || !new_walk.is_between()) continue;
    old_kept = old_walk.passed();
    new_kept = new_walk.passed();
  }
  std::vector<TokenId> kept(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(old_kept));
  kept.insert(kept.end(), prompt.begin() + static_cast<std::ptrdiff_t>(new_kept), prompt.end());
  return kept;
}

}  // namespace inferno
