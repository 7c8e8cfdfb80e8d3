// The paged KV cache as the scheduler sees it: one block pool for each window group and one prefix tree for
// all groups. It tracks which sequence holds which block; model/kv_cache.h owns the memory.
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
  KvBlocks(const std::vector<CacheGroup>& groups, int block_size, bool prefix_cache);

  int block_size() const { return block_size_; }
  int blocks() const;
  int free_blocks() const;
  const BlockPool& pool(std::size_t group) const { return groups_[group].pool; }
  std::size_t groups() const { return groups_.size(); }
  const PrefixTree& tree() const { return tree_; }

  // Gives an empty sequence the longest prefix that every group has cached, in whole blocks and at least one
  // token short of the whole, and sets its `computed`.
  void claim_prefix(Sequence& sequence);
  // Gives `to`, which is empty, everything `from` has computed of the prompt they share, less one token: the
  // last one is computed again for its logits. Blocks are shared and copied when first written to.
  void fork(const Sequence& from, Sequence& to);

  // Takes the blocks for positions [computed, end), all or none.
  bool grow(Sequence& sequence, int end, std::vector<BlockCopy>& copies);
  // The largest `end` up to `wanted` for which grow() would succeed; `computed` if there is no room.
  int reachable_end(const Sequence& sequence, int wanted) const;
  // Whether `end` tokens of the sequence fit into the free blocks less `promised`, which has one number for
  // each group.
  bool has_room(const Sequence& sequence, int end, const std::vector<int>& promised) const;
  // Adds the blocks that the sequence lacks for `end` tokens.
  void add_missing(const Sequence& sequence, int end, std::vector<int>& promised) const;

  // Called after a step that advanced `computed`: caches full blocks and frees those outside the window.
  void advance(Sequence& sequence);
  void release(Sequence& sequence);
  // Forgets the cached prefixes that no sequence uses.
  void drop_idle_prefixes();

 private:
  struct Group {
    int window;
    BlockPool pool;
  };

  int missing(const Sequence& sequence, std::size_t group, int end) const;
  bool must_copy(const Sequence& sequence, std::size_t group) const;
  BlockId take(std::size_t group);
  int first_visible_block(std::size_t group, int position) const;
  int longest_prefix(const std::vector<PrefixTree::Node*>& path) const;
  void move_to(Sequence& sequence, PrefixTree::Node* node, int depth);
  void cache_full_blocks(Sequence& sequence);

  std::vector<Group> groups_;
  int block_size_;
  bool prefix_cache_;
  PrefixTree tree_;
};

}  // namespace inferno
