// One answer in the making, as the scheduler sees it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/token.h"
#include "engine/block_pool.h"
#include "engine/prefix_tree.h"

namespace inferno {

using SequenceId = std::uint64_t;  // ascending with arrival: the lower, the older

struct Sequence {
  SequenceId id = 0;
  std::vector<TokenId> tokens;  // prompt, then answer
  int prompt = 0;               // of them
  int limit = 0;                // prompt and answer together end here
  std::vector<TokenId> stop_tokens;
  std::string client;  // takes turns with others
  std::string scope;   // shares cached prefixes within it

  // The scheduler's own.
  int computed = 0;                          // tokens whose keys and values are cached
  std::vector<std::vector<BlockId>> blocks;  // for each window group, by position; no_block where it slid out
  std::vector<int> first;                    // for each group: the first block still held
  PrefixTree::Node* place = nullptr;         // in the prefix tree, `placed` blocks deep
  int placed = 0;
  int cached = 0;           // of the prompt, found in the cache when the sequence was first served
  bool was_served = false;  // at least once
  bool is_running = false;
  bool is_fresh = false;          // admitted, but not served since
  std::vector<SequenceId> forks;  // wait until the prompt is computed, then share its blocks

  int remaining() const { return static_cast<int>(tokens.size()) - computed; }
};

}  // namespace inferno
