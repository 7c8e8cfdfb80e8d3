// Byte-pair encoding: start from characters (or bytes), and while some neighbours have a merge, join the pair
// with the best rank, leftmost first. Serves byte-level vocabularies and sentencepiece-style ones.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/flat_map.h"
#include "text/vocabulary.h"

namespace inferno {

struct BpeOptions {
  bool byte_level = false;     // pieces are raw bytes and so are the symbols to start from
  bool ignore_merges = false;  // a word that is a token is that token, merges or not
  bool byte_fallback = false;  // a character without a token becomes its bytes <0x00>..<0xFF>
  bool fuse_unknown = false;   // neighbouring unknown characters become one unknown token
  std::optional<TokenId> unknown;
};

// Which pair becomes which token. Filled while loading, best merges first or with explicit ranks.
class MergeTable {
 public:
  explicit MergeTable(std::size_t expected = 0) : pairs_(expected) {}
  // The later of two merges of the same pair wins, as in Hugging Face's loader.
  void add(TokenId left, TokenId right, TokenId result, std::uint32_t rank);
  // Rank in the high half, resulting token in the low half; FlatMap::none when the pair does not merge.
  std::uint64_t find(TokenId left, TokenId right) const { return pairs_.find(key(left, right)); }
  void prefetch(TokenId left, TokenId right) const { pairs_.prefetch(key(left, right)); }

 private:
  static std::uint64_t key(TokenId left, TokenId right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }
  FlatMap pairs_;
};

// Resolves the pieces of merges and adds them to a MergeTable. Each merge needs four random accesses to
// tables larger than the caches, so a batch of merges is prefetched at a time.
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

class Bpe final : public SubwordModel {
 public:
  // `word_start` is a piece (such as "▁") of which the caller knows that no merge has it at the beginning of
  // its right part unless the left part ends with it too: the text may then be cut there without changing the
  // result, which keeps words short. Empty when there is none.
  Bpe(Vocabulary vocabulary, MergeTable merges, BpeOptions options, std::string word_start = {});
  void encode(std::vector<TokenId>& out, std::string_view piece) const override;

 private:
  enum class Whole : unsigned char { unknown, yes, no };

  void encode_word(std::vector<TokenId>& out, std::string_view word) const;
  void append_symbols(std::vector<TokenId>& out, std::string_view word) const;
  void append_fallback(std::vector<TokenId>& out, std::string_view character, bool& pending_unknown) const;

  Vocabulary vocabulary_;
  MergeTable merges_;
  BpeOptions options_;
  std::string word_start_;
  std::array<TokenId, 256> single_byte_{};
  std::array<TokenId, 256> fallback_{};
  bool has_fallback_ = false;
  // Whether merging a piece of the vocabulary gives that one token. Found out on first use; every thread
  // would find the same, so relaxed atomics are enough.
  mutable std::unique_ptr<std::atomic<Whole>[]> whole_;
};

// The inner loop: merges symbols[first..] in place until no neighbours have a merge. n log n for long words.
void merge_symbols(std::vector<TokenId>& symbols, std::size_t first, const MergeTable& merges);

}  // namespace inferno
