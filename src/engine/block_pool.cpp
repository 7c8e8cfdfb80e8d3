#include "engine/block_pool.h"

#include "base/error.h"

namespace inferno {

BlockPool::BlockPool(int blocks) : blocks_(static_cast<std::size_t>(blocks)) {
  // Lowest first: memory that was never touched costs nothing.
  for (BlockId block = blocks - 1; block >= 0; --block) unused_.push_back(block);
}

std::optional<BlockPool::Taken> BlockPool::take() {
  Taken taken;
  if (!unused_.empty()) {
    taken.block = unused_.back();
    unused_.pop_back();
  } else if (oldest_ != no_block) {
    taken = {oldest_, true};
    remove_idle(taken.block);
    at(taken.block).cached = false;
  } else {
    return std::nullopt;
  }
  at(taken.block).references = 1;
  return taken;
}

void BlockPool::share(BlockId block) {
  if (at(block).references++ == 0) {
    expects(at(block).cached, "a block without an owner is shared only if it is cached");
    remove_idle(block);
  }
}

void BlockPool::release(BlockId block) {
  expects(at(block).references > 0, "a released block has an owner");
  if (--at(block).references > 0) return;
  if (at(block).cached) {
    append_idle(block);
  } else {
    unused_.push_back(block);
  }
}

void BlockPool::cache(BlockId block) {
  expects(at(block).references > 0 && !at(block).cached, "a block is cached once, by its owner");
  at(block).cached = true;
}

void BlockPool::uncache(BlockId block) {
  expects(at(block).cached, "only a cached block is uncached");
  at(block).cached = false;
  if (at(block).references > 0) return;
  remove_idle(block);
  unused_.push_back(block);
}

void BlockPool::append_idle(BlockId block) {
  Block& entry = at(block);
  entry.before = newest_;
  entry.after = no_block;
  (newest_ == no_block ? oldest_ : at(newest_).after) = block;
  newest_ = block;
  ++idle_;
}

void BlockPool::remove_idle(BlockId block) {
  const Block& entry = at(block);
  (entry.before == no_block ? oldest_ : at(entry.before).after) = entry.after;
  (entry.after == no_block ? newest_ : at(entry.after).before) = entry.before;
  --idle_;
}

}  // namespace inferno
