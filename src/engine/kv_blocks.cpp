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

KvBlocks::KvBlocks(const std::vector<CacheGroup>& groups, int block_size, bool prefix_cache)
    : block_size_(block_size), prefix_cache_(prefix_cache), tree_(static_cast<int>(groups.size())) {
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

// The block of the first position that a query at `position` sees. One more position is kept, because a fork
// computes the last token of the prompt again.
int KvBlocks::first_visible_block(std::size_t group, int position) const {
  const int window = groups_[group].window;
  return window == 0 ? 0 : std::max(0, position - window) / block_size_;
}

// The longest prefix of the path, in blocks, that every group can continue: a full group needs all blocks, a
// windowed one those that the next token sees.
int KvBlocks::longest_prefix(const std::vector<PrefixTree::Node*>& path) const {
  int longest = 0;
  std::vector<int> run(groups_.size());  // consecutive blocks up to `index`
  for (int index = 0; index < static_cast<int>(path.size()); ++index) {
    bool all = true;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      run[g] = path[at(index)]->blocks[g] == no_block ? 0 : run[g] + 1;
      const int next = (index + 1) * block_size_;
      all = all && run[g] >= index + 1 - first_visible_block(g, next);
    }
    if (all) longest = index + 1;
  }
  return longest;
}

void KvBlocks::claim_prefix(Sequence& sequence) {
  sequence.blocks.assign(groups_.size(), {});
  sequence.first_block.assign(groups_.size(), 0);
  if (!prefix_cache_) return;
  PrefixTree::Node* node = tree_.root(sequence.scope);
  std::vector<PrefixTree::Node*> path;
  const int max_blocks =
      sequence.reuse_prefix ? (static_cast<int>(sequence.tokens.size()) - 1) / block_size_ : 0;
  PrefixTree::Node* step = node;
  while (static_cast<int>(path.size()) < max_blocks) {
    step = tree_.find(step, block_of(sequence, static_cast<int>(path.size()), block_size_));
    if (step == nullptr) break;
    path.push_back(step);
  }
  const int found = longest_prefix(path);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const int first = first_visible_block(g, found * block_size_);
    sequence.first_block[g] = first;
    sequence.blocks[g].assign(at(found), no_block);
    for (int index = first; index < found; ++index) {
      sequence.blocks[g][at(index)] = path[at(index)]->blocks[g];
      groups_[g].pool.share(sequence.blocks[g][at(index)]);
    }
  }
  move_to(sequence, found == 0 ? node : path[at(found - 1)], found);
  sequence.computed = found * block_size_;
}

void KvBlocks::fork(const Sequence& from, Sequence& to) {
  to.computed = to.prompt_tokens - 1;
  to.blocks.assign(groups_.size(), {});
  to.first_block.assign(groups_.size(), 0);
  const int held = (to.prompt_tokens - 1) / block_size_ + 1;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    to.first_block[g] = std::max(from.first_block[g], first_visible_block(g, to.computed));
    to.blocks[g].assign(from.blocks[g].begin(), from.blocks[g].begin() + held);
    for (int index = 0; index < held; ++index) {
      BlockId& block = to.blocks[g][at(index)];
      if (index < to.first_block[g]) {
        block = no_block;
      } else {
        groups_[g].pool.share(block);
      }
    }
  }
  if (!prefix_cache_) return;
  PrefixTree::Node* node = from.tree_node;
  int depth = from.tree_depth;
  for (; depth > to.computed / block_size_; --depth) node = node->parent;
  move_to(to, node, depth);
}

void KvBlocks::move_to(Sequence& sequence, PrefixTree::Node* node, int depth) {
  tree_.enter(node);
  if (sequence.tree_node != nullptr) tree_.leave(sequence.tree_node);
  sequence.tree_node = node;
  sequence.tree_depth = depth;
}

bool KvBlocks::must_copy(const Sequence& sequence, std::size_t group) const {
  const int index = sequence.computed / block_size_;
  if (index >= static_cast<int>(sequence.blocks[group].size())) return false;
  const BlockId block = sequence.blocks[group][at(index)];
  return groups_[group].pool.references(block) > 1 || groups_[group].pool.is_cached(block);
}

int KvBlocks::missing(const Sequence& sequence, std::size_t group, int end) const {
  const int wanted = blocks_for(end, block_size_);
  const int held = static_cast<int>(sequence.blocks[group].size());
  return std::max(0, wanted - held) + (must_copy(sequence, group) ? 1 : 0);
}

BlockId KvBlocks::take(std::size_t group) {
  const auto taken = groups_[group].pool.take();
  expects(taken.has_value(), "the free blocks were counted before");
  if (taken->evicted) tree_.block_evicted(group, taken->block);
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

int KvBlocks::reachable_end(const Sequence& sequence, int wanted) const {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const int spare = groups_[g].pool.free_blocks() - (must_copy(sequence, g) ? 1 : 0);
    if (spare < 0) return sequence.computed;
    wanted = std::min(wanted, (static_cast<int>(sequence.blocks[g].size()) + spare) * block_size_);
  }
  return std::max(wanted, sequence.computed);
}

// A windowed group needs at most its window and what one step adds. Chunks shrink to the free blocks, so one
// block beyond the window is enough.
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
      const int held = static_cast<int>(sequence.blocks[g].size()) - sequence.first_block[g];
      lacks = std::min(lacks, std::max(0, groups_[g].window / block_size_ + 2 - held));
    }
    promised[g] += lacks;
  }
}

void KvBlocks::cache_full_blocks(Sequence& sequence) {
  while ((sequence.tree_depth + 1) * block_size_ <= sequence.computed) {
    const int index = sequence.tree_depth;
    PrefixTree::Node* node = tree_.find_or_add(sequence.tree_node, block_of(sequence, index, block_size_));
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const BlockId block = sequence.blocks[g][at(index)];
      // If another sequence computed the same block at the same time, the first one stays cached.
      if (block == no_block || node->blocks[g] != no_block || groups_[g].pool.is_cached(block)) continue;
      groups_[g].pool.cache(block);
      tree_.set_block(node, g, block);
    }
    move_to(sequence, node, index + 1);
  }
}

void KvBlocks::advance(Sequence& sequence) {
  if (prefix_cache_) cache_full_blocks(sequence);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const int needed =
        std::min(first_visible_block(g, sequence.computed), static_cast<int>(sequence.blocks[g].size()));
    for (int& first = sequence.first_block[g]; first < needed; ++first) {
      groups_[g].pool.release(sequence.blocks[g][at(first)]);
      sequence.blocks[g][at(first)] = no_block;
    }
  }
}

void KvBlocks::release(Sequence& sequence) {
  for (std::size_t g = 0; g < sequence.blocks.size(); ++g) {
    // Last block first, so that eviction shortens a cached prefix from its end.
    for (int index = static_cast<int>(sequence.blocks[g].size()) - 1; index >= sequence.first_block[g];
         --index) {
      groups_[g].pool.release(sequence.blocks[g][at(index)]);
    }
  }
  sequence.blocks.clear();
  sequence.first_block.clear();
  sequence.computed = 0;
  sequence.tree_depth = 0;
  if (sequence.tree_node != nullptr) tree_.leave(sequence.tree_node);
  sequence.tree_node = nullptr;
}

void KvBlocks::drop_idle_prefixes() {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    BlockPool& pool = groups_[g].pool;
    for (BlockId block = 0; block < pool.blocks(); ++block) {
      if (!pool.is_cached(block) || pool.references(block) > 0) continue;
      pool.uncache(block);
      tree_.block_evicted(g, block);
    }
  }
}

}  // namespace inferno
