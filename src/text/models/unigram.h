// Unigram language model: splits a text into the pieces with the highest sum of scores.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "text/models/byte_trie.h"
#include "text/models/vocabulary.h"

namespace inferno {

struct UnigramPiece {
  std::string_view text;
  double score = 0;    // logarithm of its probability
  bool usable = true;  // false for control tokens, which text never becomes
};

class Unigram final : public SubwordModel {
 public:
  static constexpr std::size_t longest_piece = 1024;  // bytes; bounds the work per byte of text

  // The id of a piece is its index in the list. Scores must be finite, pieces at most `longest_piece` long.
  Unigram(std::span<const UnigramPiece> pieces, std::optional<TokenId> unknown, bool byte_fallback);
  using SubwordModel::encode;
  // Error{corrupt} if a character has no piece and there is neither an unknown token nor byte fallback.
  void encode(std::vector<TokenId>& out, std::string_view piece, std::size_t max_tokens) const override;
  bool keeps_every_byte() const override;

 private:
  struct Step;
  std::vector<Step> best_path(std::string_view text) const;
  void append_unknown(std::vector<TokenId>& out, std::string_view text) const;

  ByteTrie trie_;
  std::vector<double> scores_;
  double unknown_score_ = 0;
  std::optional<TokenId> unknown_;
  bool byte_fallback_ = false;
  std::array<TokenId, 256> fallback_{};
};

}  // namespace inferno
