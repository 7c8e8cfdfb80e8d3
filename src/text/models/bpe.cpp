#include "text/models/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "base/utf8.h"

namespace inferno {
void MergeTable::add(TokenId left, TokenId right, TokenId result, std::uint32_t rank) {
  pairs_.set(key(left, right), static_cast<std::uint64_t>(rank) << 32 | static_cast<std::uint32_t>(result));
}

Bpe::Bpe(Vocabulary vocabulary, MergeTable merges, BpeOptions options, std::string word_start)
    : vocabulary_(std::move(vocabulary)),
      merges_(std::move(merges)),
      options_(options),
      word_start_(std::move(word_start)),
      whole_(std::make_unique<std::atomic<Whole>[]>(static_cast<std::size_t>(vocabulary_.size()))) {
  has_fallback_ = options_.byte_fallback;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    single_byte_[byte] = vocabulary_.lookup({&c, 1});
    fallback_[byte] = vocabulary_.lookup(fmt::format("<0x{:02X}>", byte));
  }
  if (!vocabulary_.find(word_start_) || options_.ignore_merges) word_start_.clear();
}

bool Bpe::keeps_every_byte() const {
  const auto is_token = [](TokenId token) { return token >= 0; };
  return (options_.byte_level && std::ranges::all_of(single_byte_, is_token)) ||
         (has_fallback_ && std::ranges::all_of(fallback_, is_token));
}

void Bpe::encode(std::vector<TokenId>& out, std::string_view piece, std::size_t max_tokens) const {
  if (word_start_.empty()) return encode_word(out, piece);
  std::size_t begin = 0;
  std::size_t searched = 0;
  while (out.size() <= max_tokens) {
    const std::size_t found = piece.find(word_start_, searched);
    if (found == std::string_view::npos) break;
    // A run of word starts belongs to the word after it.
    if (found > searched && found > begin) {
      encode_word(out, piece.substr(begin, found - begin));
      begin = found;
    }
    searched = found + word_start_.size();
  }
  if (out.size() <= max_tokens) encode_word(out, piece.substr(begin));
}

void Bpe::encode_word(std::vector<TokenId>& out, std::string_view word) const {
  const TokenId token = vocabulary_.lookup(word);
  if (token >= 0) {
    std::atomic<Whole>& whole = whole_[static_cast<std::size_t>(token)];
    if (options_.ignore_merges || whole.load(std::memory_order_relaxed) == Whole::yes) {
      out.push_back(token);
      return;
    }
    const std::size_t first = out.size();
    append_symbols(out, word);
    merge_symbols(out, first, merges_);
    const bool is_whole = out.size() == first + 1 && out.back() == token;
    whole.store(is_whole ? Whole::yes : Whole::no, std::memory_order_relaxed);
    return;
  }
  const std::size_t first = out.size();
  append_symbols(out, word);
  merge_symbols(out, first, merges_);
}

void Bpe::append_symbols(std::vector<TokenId>& out, std::string_view word) const {
  bool pending_unknown = false;
  const auto flush = [&] {
    if (pending_unknown) out.push_back(*options_.unknown);
    pending_unknown = false;
  };
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t length = options_.byte_level ? 1 : utf8::length_from_first_byte(word[at]);
    const std::string_view character = word.substr(at, length);
    const TokenId token =
        length == 1 ? single_byte_[static_cast<unsigned char>(word[at])] : vocabulary_.lookup(character);
    if (token >= 0) {
      flush();
      out.push_back(token);
    } else {
      append_fallback(out, character, pending_unknown);
    }
    at += length;
  }
  flush();
}

void Bpe::append_fallback(std::vector<TokenId>& out, std::string_view character,
                          bool& pending_unknown) const {
  if (has_fallback_) {
    bool complete = true;
    for (const char c : character) complete = complete && fallback_[static_cast<unsigned char>(c)] >= 0;
    if (complete) {
      for (const char c : character) out.push_back(fallback_[static_cast<unsigned char>(c)]);
      return;
    }
  }
  // Without an unknown token the character is dropped, as in the reference implementation.
  if (!options_.unknown) return;
  if (pending_unknown && !options_.fuse_unknown) out.push_back(*options_.unknown);
  pending_unknown = true;
}

namespace {

// Up to this length, rescanning every pair is faster than maintaining a heap.
constexpr std::size_t short_word = 48;

constexpr std::uint32_t rank_of(std::uint64_t merge) {
  return static_cast<std::uint32_t>(merge >> 32);
}
constexpr TokenId result_of(std::uint64_t merge) {
  return static_cast<TokenId>(merge & 0xFFFFFFFFU);
}

// Merges `count` symbols in place; returns how many remain.
std::size_t merge_short(TokenId* symbols, std::size_t count, const MergeTable& merges) {
  std::array<std::uint64_t, short_word> best;  // merge of symbol i and its right neighbour
  for (std::size_t i = 0; i + 1 < count; ++i) best[i] = merges.find(symbols[i], symbols[i + 1]);
  while (count > 1) {
    std::size_t at = 0;
    for (std::size_t i = 1; i + 1 < count; ++i) {
      if (rank_of(best[i]) < rank_of(best[at])) at = i;
    }
    if (best[at] == FlatMap::none) break;
    symbols[at] = result_of(best[at]);
    std::copy(symbols + at + 2, symbols + count, symbols + at + 1);
    std::copy(best.begin() + static_cast<std::ptrdiff_t>(at) + 1,
              best.begin() + static_cast<std::ptrdiff_t>(count) - 1,
              best.begin() + static_cast<std::ptrdiff_t>(at));
    --count;
    if (at + 1 < count) best[at] = merges.find(symbols[at], symbols[at + 1]);
    if (at > 0) best[at - 1] = merges.find(symbols[at - 1], symbols[at]);
  }
  return count;
}

constexpr std::uint32_t nowhere = 0xFFFFFFFF;

struct Node {
  TokenId token;
  std::uint32_t previous;
  std::uint32_t next;
};

// A possible merge of two neighbours. Stale if one of the two has been merged since.
struct Candidate {
  std::uint64_t merge;
  std::uint32_t at;
  TokenId left;
  TokenId right;
};

struct Later {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return rank_of(a.merge) != rank_of(b.merge) ? rank_of(a.merge) > rank_of(b.merge) : a.at > b.at;
  }
};

class LongWord {
 public:
  LongWord(std::vector<TokenId>& symbols, std::size_t first, const MergeTable& merges)
      : symbols_(symbols), first_(first), merges_(merges) {
    const std::size_t count = symbols.size() - first;
    nodes_.resize(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      nodes_[i] = {.token = symbols[first + i], .previous = i - 1, .next = i + 1 < count ? i + 1 : nowhere};
    }
    for (std::uint32_t i = 0; i < count; ++i) note(i);
    std::make_heap(heap_.begin(), heap_.end(), Later{});
  }

  void merge() {
    heaped_ = true;
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), Later{});
      const Candidate candidate = heap_.back();
      heap_.pop_back();
      apply(candidate);
    }
    symbols_.resize(first_);
    for (std::uint32_t at = 0; at != nowhere; at = nodes_[at].next) symbols_.push_back(nodes_[at].token);
  }

 private:
  void note(std::uint32_t at) {
    const std::uint32_t next = nodes_[at].next;
    if (next == nowhere) return;
    const std::uint64_t merge = merges_.find(nodes_[at].token, nodes_[next].token);
    if (merge == FlatMap::none) return;
    heap_.push_back({.merge = merge, .at = at, .left = nodes_[at].token, .right = nodes_[next].token});
    if (heaped_) std::push_heap(heap_.begin(), heap_.end(), Later{});
  }

  void apply(const Candidate& candidate) {
    Node& left = nodes_[candidate.at];
    if (left.token != candidate.left || left.next == nowhere) return;
    Node& right = nodes_[left.next];
    if (right.token != candidate.right) return;
    left.token = result_of(candidate.merge);
    right.token = -1;
    left.next = right.next;
    if (left.next != nowhere) nodes_[left.next].previous = candidate.at;
    note(candidate.at);
    if (left.previous != nowhere) note(left.previous);
  }

  std::vector<TokenId>& symbols_;
  std::size_t first_;
  const MergeTable& merges_;
  std::vector<Node> nodes_;
  std::vector<Candidate> heap_;
  bool heaped_ = false;
};

}  // namespace

void merge_symbols(std::vector<TokenId>& symbols, std::size_t first, const MergeTable& merges) {
  const std::size_t count = symbols.size() - first;
  if (count < 2) return;
  if (count <= short_word) {
    symbols.resize(first + merge_short(symbols.data() + first, count, merges));
  } else {
    LongWord(symbols, first, merges).merge();
  }
}

void MergeLoader::add(std::string_view left, std::string_view right, std::uint32_t rank) {
  Pending& merge = pending_[count_++];
  merge.text[0].assign(left);
  merge.text[1].assign(right);
  merge.text[2].assign(left).append(right);
  merge.rank = rank;
  for (std::size_t i = 0; i < 3; ++i) {
    merge.key[i] = key_of(merge.text[i]);
    vocabulary_.prefetch(merge.key[i]);
  }
  if (count_ == pending_.size()) flush();
}

void MergeLoader::flush() {
  const std::span<Pending> batch(pending_.data(), count_);
  for (Pending& merge : batch) {
    for (std::size_t i = 0; i < 3; ++i) merge.id[i] = vocabulary_.lookup(merge.key[i], merge.text[i]);
    to_.prefetch(merge.id[0], merge.id[1]);
  }
  for (const Pending& merge : batch) {
    const auto unknown = std::ranges::find(merge.id, -1);
    if (unknown == merge.id.end()) {
      to_.add(merge.id[0], merge.id[1], merge.id[2], merge.rank);
    } else {
      missing_.push_back(
          {.rank = merge.rank, .piece = merge.text[static_cast<std::size_t>(unknown - merge.id.begin())]});
    }
  }
  count_ = 0;
}

std::vector<MergeLoader::Missing> MergeLoader::finish() {
  flush();
  return std::move(missing_);
}

}  // namespace inferno
