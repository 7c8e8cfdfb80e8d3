#include "text/merge_symbols.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace inferno {
namespace {

// Up to here looking at every pair again beats keeping a heap.
constexpr std::size_t short_word = 48;

constexpr std::uint32_t rank_of(std::uint64_t merge) {
  return static_cast<std::uint32_t>(merge >> 32);
}
constexpr TokenId result_of(std::uint64_t merge) {
  return static_cast<TokenId>(merge & 0xFFFFFFFFU);
}

// `count` symbols at `symbols`; returns how many are left.
std::size_t merge_short(TokenId* symbols, std::size_t count, const MergeTable& merges) {
  std::array<std::uint64_t, short_word> best;  // of symbol i and its right neighbour
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

// A merge seen while its two symbols stood side by side; stale when one of them has been merged since.
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

}  // namespace inferno
