// Layers that see the same stretch of the past share one block table: a windowed layer gives blocks back
// as it slides, a full one never does.
#pragma once

#include <algorithm>
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

}  // namespace inferno
