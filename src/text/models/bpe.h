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

#include "text/models/flat_map.h"
#include "text/models/vocabulary.h"

namespace inferno {

struct BpeOptions {
  bool byte_level = false;     // pieces are raw bytes and so are the symbols to start from
  bool ignore_merges = false;  // a word that is in the vocabulary becomes that token without merging
  bool byte_fallback = false;  // a character without a token becomes its bytes <0x00>..<0xFF>
  bool fuse_unknown = false;   // neighbouring unknown characters become one unknown token
  std::optional<TokenId> unknown;
};

// Maps a pair of tokens to the token it merges into. Filled while loading.
class MergeTable {
 public:
  explicit MergeTable(std::size_t expected = 0) : pairs_(expected) {}
  // A second merge of the same pair replaces the first, as in Hugging Face's loader.
  void add(TokenId left, TokenId right, TokenId result, std::uint32_t rank);
  // Rank in the high half, resulting token in the low half; FlatMap::none if the pair does not merge.
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
  // Completes the last batch. Returns the merges that were skipped because the vocabulary lacks a piece.
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
  // `word_start` is a piece, such as "▁", at which text may be split without changing the result, which keeps
  // words short. The caller guarantees that a merge whose right part begins with `word_start` has a left part
  // that ends with it. Empty if the vocabulary has no such piece.
  Bpe(Vocabulary vocabulary, MergeTable merges, BpeOptions options, std::string word_start = {});
  using SubwordModel::encode;
  void encode(std::vector<TokenId>& out, std::string_view piece, std::size_t max_tokens) const override;
  bool keeps_every_byte() const override;

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
  // Whether merging the characters of a piece yields that one token. Computed on first use; all threads
  // compute the same value, so relaxed atomics suffice.
  mutable std::unique_ptr<std::atomic<Whole>[]> whole_;
};

// The inner loop: merges symbols[first..] in place until no neighbours have a merge. n log n for long words.
void merge_symbols(std::vector<TokenId>& symbols, std::size_t first, const MergeTable& merges);

}  // namespace inferno
