// How the KV cache is divided. Layers with the same attention window share one block table, because a
// windowed layer frees blocks as its window slides while a full layer never does; each group stores tokens in
// blocks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "spec/model_spec.h"

namespace inferno {

// The distinct windows of a model, in order of first appearance.
inline std::vector<int> window_groups(const ModelSpec& spec) {
  std::vector<int> windows;
  for (const BlockSpec& block : spec.blocks) {
    if (std::find(windows.begin(), windows.end(), block.attention.window) == windows.end()) {
      windows.push_back(block.attention.window);
    }
  }
  return windows;
}

// For each layer, the index of its window in window_groups().
inline std::vector<std::size_t> group_of_layer(const ModelSpec& spec) {
  const std::vector<int> windows = window_groups(spec);
  std::vector<std::size_t> groups;
  for (const BlockSpec& block : spec.blocks) {
    const auto found = std::find(windows.begin(), windows.end(), block.attention.window);
    groups.push_back(static_cast<std::size_t>(found - windows.begin()));
  }
  return groups;
}

// The memory of one group: as many blocks in each of its layers.
struct CacheGroup {
  int window = 0;  // 0: every position is visible
  int blocks = 0;
};

// The number of blocks that hold `tokens` tokens.
constexpr int blocks_for(int tokens, int block_size) {
  return (tokens + block_size - 1) / block_size;
}

}  // namespace inferno
