#include "model/kv_cache.h"

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

KvCache::KvCache(const ModelSpec& spec, Backend& backend, std::span<const CacheGroup> groups,
                 int block_size) {
  const std::vector<std::size_t> group_of = group_of_layer(spec);
  for (std::size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    const AttentionSpec& a = spec.blocks[layer].attention;
    const int rows = groups[group_of[layer]].blocks * block_size;
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
