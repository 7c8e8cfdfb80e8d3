// Bookkeeping for the KV cache blocks of one window group: which are free, owned, shared or cached for reuse.
// Knows neither devices nor tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace inferno {

using BlockId = std::int32_t;
inline constexpr BlockId no_block = -1;

class BlockPool {
 public:
  explicit BlockPool(int blocks);

  int blocks() const { return static_cast<int>(blocks_.size()); }
  // Blocks that take() can return: unused ones, and cached ones without an owner.
  int free_blocks() const { return static_cast<int>(unused_.size()) + idle_; }
  int references(BlockId block) const { return at(block).references; }
  bool is_cached(BlockId block) const { return at(block).cached; }

  struct Taken {
    BlockId block = no_block;
    bool evicted = false;  // it held a cached prefix, which the prefix tree must drop
  };
  // A block with one owner. nullopt if none is left: the caller preempts a sequence or waits; that is not an
  // error. Unused blocks are taken first, then cached ones, least recently used first.
  std::optional<Taken> take();
  // One more owner.
  void share(BlockId block);
  // One owner less. A cached block stays cached until take() needs it.
  void release(BlockId block);

  // Keeps the contents for reuse after the last owner releases the block. The block has an owner.
  void cache(BlockId block);
  // The contents are not needed for reuse.
  void uncache(BlockId block);

 private:
  struct Block {
    int references = 0;
    bool cached = false;
    BlockId before = no_block, after = no_block;  // neighbours in the list of idle blocks
  };

  Block& at(BlockId block) { return blocks_[static_cast<std::size_t>(block)]; }
  const Block& at(BlockId block) const { return blocks_[static_cast<std::size_t>(block)]; }
  void append_idle(BlockId block);
  void remove_idle(BlockId block);

  std::vector<Block> blocks_;
  std::vector<BlockId> unused_;                    // neither owned nor cached; taken from the back
  BlockId oldest_ = no_block, newest_ = no_block;  // cached without an owner, by time of release
  int idle_ = 0;
};

}  // namespace inferno
