// The paged cache as the scheduler sees it: one pool for each attention window and one tree of prefixes for
// all of them. Says who holds which block; the memory itself is model/kv_cache.h's.
#pragma once

#include <vector>

#include "engine/block_pool.h"
#include "engine/prefix_tree.h"
#include "engine/sequence.h"
#include "spec/window_groups.h"

namespace inferno {

// Rows [0, rows) of block `from` must be copied to block `to`, in all layers of the group, before the step.
struct BlockCopy {
  std::size_t group = 0;
  BlockId from = no_block, to = no_block;
  int rows = 0;
};

class KvBlocks {
 public:
  KvBlocks(const std::vector<CacheGroup>& groups, int block_size, bool remembers);

  int block_size() const { return block_size_; }
  int blocks() const;
  int free_blocks() const;
  const BlockPool& pool(std::size_t group) const { return groups_[group].pool; }
  std::size_t groups() const { return groups_.size(); }
  const PrefixTree& tree() const { return tree_; }

  // Gives an empty sequence the longest prefix that every group remembers, in whole blocks and at least one
  // token short of the whole, and sets its `computed`.
  void claim_prefix(Sequence& sequence);
  // Gives `to`, which is empty, everything `from` has computed of the prompt they share, less one token: the
  // last one is computed again for its logits. Blocks are shared and copied when first written to.
  void fork(const Sequence& from, Sequence& to);

  // Takes what writing positions [computed, end) needs, all or nothing.
  bool grow(Sequence& sequence, int end, std::vector<BlockCopy>& copies);
  // The largest `end` that grow() would manage, at most `wanted`; `computed` when there is no room at all.
  int reach(const Sequence& sequence, int wanted) const;
  // Whether the sequence could come to hold `end` tokens within what is free less `promised` (one number for
  // each group).
  bool has_room(const Sequence& sequence, int end, const std::vector<int>& promised) const;
  // Adds what the sequence still lacks for `end` tokens.
  void add_missing(const Sequence& sequence, int end, std::vector<int>& promised) const;

  // After a step: `computed` has advanced. Remembers blocks that became full, gives back what slid out.
  void advance(Sequence& sequence);
  void release(Sequence& sequence);

 private:
  struct Group {
    int window;
    BlockPool pool;
  };

  int missing(const Sequence& sequence, std::size_t group, int end) const;
  bool must_copy(const Sequence& sequence, std::size_t group) const;
  BlockId take(std::size_t group);
  int first_needed(std::size_t group, int position) const;
  int longest_prefix(const std::vector<PrefixTree::Node*>& path) const;
  void stand_at(Sequence& sequence, PrefixTree::Node* node, int placed);
  void remember_full_blocks(Sequence& sequence);

  std::vector<Group> groups_;
  int block_size_;
  bool remembers_;
  PrefixTree tree_;
};

}  // namespace inferno
