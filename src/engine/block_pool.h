// Bookkeeping for the blocks of one attention window: which are free, owned, shared or remembered. Knows no
// device and no tokens.
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
  // That take() can give: those never remembered, and remembered ones without an owner.
  int free_blocks() const { return static_cast<int>(unused_.size()) + idle_; }
  int references(BlockId block) const { return at(block).references; }
  bool is_remembered(BlockId block) const { return at(block).remembered; }

  struct Taken {
    BlockId block = no_block;
    bool forgotten = false;  // it was remembered until now: whoever remembered it must hear of it
  };
  // A block with one owner. nullopt when none is left: the caller preempts someone or waits; that is not an
  // error. Remembered blocks go last, and of them the least recently used first.
  std::optional<Taken> take();
  // One more owner.
  void share(BlockId block);
  // One owner less. A remembered block stays remembered until take() needs it.
  void release(BlockId block);

  // Its contents are worth finding again. The block has an owner.
  void remember(BlockId block);
  // Nobody will look for it any more.
  void forget(BlockId block);

 private:
  struct Block {
    int references = 0;
    bool remembered = false;
    BlockId before = no_block, after = no_block;  // among the idle ones
  };

  Block& at(BlockId block) { return blocks_[static_cast<std::size_t>(block)]; }
  const Block& at(BlockId block) const { return blocks_[static_cast<std::size_t>(block)]; }
  void append_idle(BlockId block);
  void remove_idle(BlockId block);

  std::vector<Block> blocks_;
  std::vector<BlockId> unused_;                    // neither owned nor remembered; the last goes first
  BlockId oldest_ = no_block, newest_ = no_block;  // remembered without an owner, by time of release
  int idle_ = 0;
};

}  // namespace inferno
