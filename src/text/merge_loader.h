// Merges by the text of their pieces to a MergeTable. Each needs four random looks into tables larger than
// the caches, so a batch of them is under way at a time.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/bpe.h"
#include "text/vocabulary.h"

namespace inferno {

class MergeLoader {
 public:
  struct Missing {
    std::uint32_t rank = 0;
    std::string piece;
  };

  MergeLoader(const Vocabulary& vocabulary, MergeTable& to) : vocabulary_(vocabulary), to_(to) {}
  void add(std::string_view left, std::string_view right, std::uint32_t rank);
  // Completes the last batch. What comes back are the merges left out because the vocabulary lacks a piece.
  std::vector<Missing> finish();

 private:
  struct Pending {
    std::array<std::string, 3> text;  // left, right, both
    std::array<PieceKey, 3> key;
    std::array<TokenId, 3> id{};
    std::uint32_t rank = 0;
  };
  void flush();

  const Vocabulary& vocabulary_;
  MergeTable& to_;
  std::array<Pending, 32> pending_;
  std::size_t count_ = 0;
  std::vector<Missing> missing_;
};

}  // namespace inferno
