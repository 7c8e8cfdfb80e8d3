#include "engine/kv_blocks.h"

#include <algorithm>

#include "base/error.h"

namespace inferno {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

std::span<const TokenId> block_of(const Sequence& sequence, int index, int block_size) {
  return std::span(sequence.tokens).subspan(at(index * block_size), at(block_size));
}

}  // namespace

KvBlocks::KvBlocks(const std::vector<CacheGroup>& groups, int block_size, bool remembers)
    : block_size_(block_size), remembers_(remembers), tree_(static_cast<int>(groups.size())) {
  for (const CacheGroup& group : groups) groups_.push_back({group.window, BlockPool(group.blocks)});
}

int KvBlocks::blocks() const {
  int sum = 0;
  for (const Group& group : groups_) sum += group.pool.blocks();
  return sum;
}

int KvBlocks::free_blocks() const {
  int sum = 0;
  for (const Group& group : groups_) sum += group.pool.free_blocks();
  return sum;
}

// The block of the first position that a query at `position` sees. One position more is kept: a fork
// computes the last token of the prompt again.
int KvBlocks::first_needed(std::size_t group, int position) const {
  const int window = groups_[group].window;
  return window == 0 ? 0 : std::max(0, position - window) / block_size_;
}

// Blocks of the path that every group can continue behind: a full group has all of them, a windowed one those
// that the next token sees.
int KvBlocks::longest_prefix(const std::vector<PrefixTree::Node*>& path) const {
  int longest = 0;
  std::vector<int> run(groups_.size());  // blocks without a gap, up to the one looked at
  for (int index = 0; index < static_cast<int>(path.size()); ++index) {
    bool all = true;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      run[g] = path[at(index)]->blocks[g] == no_block ? 0 : run[g] + 1;
      const int next = (index + 1) * block_size_;
      all = all && run[g] >= index + 1 - first_needed(g, next);
    }
    if (all) longest = index + 1;
  }
  return longest;
}

void KvBlocks::claim_prefix(Sequence& sequence) {
  sequence.blocks.assign(groups_.size(), {});
  sequence.first.assign(groups_.size(), 0);
  if (!remembers_) return;
  PrefixTree::Node* node = tree_.root(sequence.scope);
  std::vector<PrefixTree::Node*> path;
  const int most = (static_cast<int>(sequence.tokens.size()) - 1) / block_size_;
  PrefixTree::Node* step = node;
  while (static_cast<int>(path.size()) < most) {
    step = tree_.find(step, block_of(sequence, static_cast<int>(path.size()), block_size_));
    if (step == nullptr) break;
    path.push_back(step);
  }
  const int found = longest_prefix(path);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const int first = first_needed(g, found * block_size_);
    sequence.first[g] = first;
    sequence.blocks[g].assign(at(found), no_block);
    for (int index = first; index < found; ++index) {
      sequence.blocks[g][at(index)] = path[at(index)]->blocks[g];
      groups_[g].pool.share(sequence.blocks[g][at(index)]);
    }
  }
  stand_at(sequence, found == 0 ? node : path[at(found - 1)], found);
  sequence.computed = found * block_size_;
}

void KvBlocks::fork(const Sequence& from, Sequence& to) {
  to.computed = to.prompt - 1;
  to.blocks.assign(groups_.size(), {});
  to.first.assign(groups_.size(), 0);
  const int held = (to.prompt - 1) / block_size_ + 1;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    to.first[g] = std::max(from.first[g], first_needed(g, to.computed));
    to.blocks[g].assign(from.blocks[g].begin(), from.blocks[g].begin() + held);
    for (int index = 0; index < held; ++index) {
      BlockId& block = to.blocks[g][at(index)];
      if (index < to.first[g]) {
        block = no_block;
      } else {
        groups_[g].pool.share(block);
      }
    }
  }
  if (!remembers_) return;
  PrefixTree::Node* place = from.place;
  int placed = from.placed;
  for (; placed > to.computed / block_size_; --placed) place = place->parent;
  stand_at(to, place, placed);
}

void KvBlocks::stand_at(Sequence& sequence, PrefixTree::Node* node, int placed) {
  tree_.enter(node);
  if (sequence.place != nullptr) tree_.leave(sequence.place);
  sequence.place = node;
  sequence.placed = placed;
}

bool KvBlocks::must_copy(const Sequence& sequence, std::size_t group) const {
  const int index = sequence.computed / block_size_;
  if (index >= static_cast<int>(sequence.blocks[group].size())) return false;
  const BlockId block = sequence.blocks[group][at(index)];
  return groups_[group].pool.references(block) > 1 || groups_[group].pool.is_remembered(block);
}

int KvBlocks::missing(const Sequence& sequence, std::size_t group, int end) const {
  const int wanted = blocks_for(end, block_size_);
  const int held = static_cast<int>(sequence.blocks[group].size());
  return std::max(0, wanted - held) + (must_copy(sequence, group) ? 1 : 0);
}

BlockId KvBlocks::take(std::size_t group) {
  const auto taken = groups_[group].pool.take();
  expects(taken.has_value(), "there is a block, because they were counted");
  if (taken->forgotten) tree_.block_taken(group, taken->block);
  return taken->block;
}

bool KvBlocks::grow(Sequence& sequence, int end, std::vector<BlockCopy>& copies) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (missing(sequence, g, end) > groups_[g].pool.free_blocks()) return false;
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (must_copy(sequence, g)) {
      BlockId& block = sequence.blocks[g][at(sequence.computed / block_size_)];
      const BlockId fresh = take(g);
      const int rows = sequence.computed % block_size_;
      if (rows > 0) copies.push_back({g, block, fresh, rows});
      groups_[g].pool.release(block);
      block = fresh;
    }
    while (static_cast<int>(sequence.blocks[g].size()) * block_size_ < end) {
      sequence.blocks[g].push_back(take(g));
    }
  }
  return true;
}

int KvBlocks::reach(const Sequence& sequence, int wanted) const {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const int spare = groups_[g].pool.free_blocks() - (must_copy(sequence, g) ? 1 : 0);
    if (spare < 0) return sequence.computed;
    wanted = std::min(wanted, (static_cast<int>(sequence.blocks[g].size()) + spare) * block_size_);
  }
  return std::max(wanted, sequence.computed);
}

// A windowed group never needs more than its window and what one step adds; a chunk shrinks to what there
// is, so that one block beyond the window is enough.
bool KvBlocks::has_room(const Sequence& sequence, int end, const std::vector<int>& promised) const {
  std::vector<int> wanted(groups_.size());
  add_missing(sequence, end, wanted);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (wanted[g] + promised[g] > groups_[g].pool.free_blocks()) return false;
  }
  return true;
}

void KvBlocks::add_missing(const Sequence& sequence, int end, std::vector<int>& promised) const {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    int lacks = missing(sequence, g, end);
    if (groups_[g].window > 0) {
      const int held = static_cast<int>(sequence.blocks[g].size()) - sequence.first[g];
      lacks = std::min(lacks, std::max(0, groups_[g].window / block_size_ + 2 - held));
    }
    promised[g] += lacks;
  }
}

void KvBlocks::remember_full_blocks(Sequence& sequence) {
  while ((sequence.placed + 1) * block_size_ <= sequence.computed) {
    const int index = sequence.placed;
    PrefixTree::Node* node = tree_.find_or_add(sequence.place, block_of(sequence, index, block_size_));
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const BlockId block = sequence.blocks[g][at(index)];
      // Another sequence may have computed the same at the same time: the first stays remembered.
      if (block == no_block || node->blocks[g] != no_block || groups_[g].pool.is_remembered(block)) continue;
      groups_[g].pool.remember(block);
      tree_.set_block(node, g, block);
    }
    stand_at(sequence, node, index + 1);
  }
}

void KvBlocks::advance(Sequence& sequence) {
  if (remembers_) remember_full_blocks(sequence);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const int needed =
        std::min(first_needed(g, sequence.computed), static_cast<int>(sequence.blocks[g].size()));
    for (int& first = sequence.first[g]; first < needed; ++first) {
      groups_[g].pool.release(sequence.blocks[g][at(first)]);
      sequence.blocks[g][at(first)] = no_block;
    }
  }
}

void KvBlocks::release(Sequence& sequence) {
  for (std::size_t g = 0; g < sequence.blocks.size(); ++g) {
    // The last first: when blocks are needed, a remembered prefix is shortened from its end.
    for (int index = static_cast<int>(sequence.blocks[g].size()) - 1; index >= sequence.first[g]; --index) {
      groups_[g].pool.release(sequence.blocks[g][at(index)]);
    }
  }
  sequence.blocks.clear();
  sequence.first.clear();
  sequence.computed = 0;
  sequence.placed = 0;
  if (sequence.place != nullptr) tree_.leave(sequence.place);
  sequence.place = nullptr;
}

}  // namespace inferno
