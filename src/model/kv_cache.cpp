#include "model/kv_cache.h"

#include <algorithm>

#include "spec/window_groups.h"

namespace inferno {

std::size_t cache_bytes_per_token(const ModelSpec& spec, int window, DType type) {
  std::size_t elements = 0;
  for (const BlockSpec& block : spec.blocks) {
    const AttentionSpec& a = block.attention;
    if (a.window != window) continue;
    elements += 2 * static_cast<std::size_t>(a.kv_heads) * static_cast<std::size_t>(a.head_dim);
  }
  return elements * size_of(type);
}

KvCache::KvCache(const ModelSpec& spec, Backend& backend, std::span<const int> blocks, int block_size) {
  const std::vector<int> windows = window_groups(spec);
  for (const BlockSpec& block : spec.blocks) {
    const AttentionSpec& a = block.attention;
    const auto group = std::find(windows.begin(), windows.end(), a.window) - windows.begin();
    const int rows = blocks[static_cast<std::size_t>(group)] * block_size;
    const auto matrix = [&] {
      Matrix m = {nullptr, backend.cache_type(), rows, a.kv_heads * a.head_dim};
      m.data = memory_.emplace_back(backend.allocate(m.bytes(), "key/value cache")).data();
      return m;
    };
    const Matrix keys = matrix();
    layers_.push_back({keys, matrix()});
  }
}

}  // namespace inferno
