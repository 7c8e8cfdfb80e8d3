#include "model/kv_cache.h"

#include <fmt/format.h>

#include "base/error.h"

namespace inferno {

CacheTypes choose_cache_types(const ModelSpec& spec, const Backend& backend, const CacheChoice& choice) {
  const CacheTypes types = choice.with_default(backend.cache_type());
  for (const BlockSpec& block : spec.blocks) {
    if (auto advice = backend.refuses_cache(block.attention, types)) {
      fail(ErrorKind::unsupported, fmt::format("a KV cache of type {} is not possible here", name_of(choice)),
           std::move(*advice));
    }
  }
  return types;
}

std::size_t cache_bytes_per_token(const ModelSpec& spec, int window, CacheTypes types) {
  std::size_t bytes = 0;
  for (const BlockSpec& block : spec.blocks) {
    const AttentionSpec& a = block.attention;
    if (a.window != window) continue;
    const std::size_t elements = static_cast<std::size_t>(a.kv_heads) * static_cast<std::size_t>(a.head_dim);
    bytes += bytes_for(types.keys, elements) + bytes_for(types.values, elements);
  }
  return bytes;
}

KvCache::KvCache(const ModelSpec& spec, Backend& backend, CacheTypes types,
                 std::span<const CacheGroup> groups, int block_size) {
  const std::vector<std::size_t> group_of = group_of_layer(spec);
  for (std::size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    const AttentionSpec& a = spec.blocks[layer].attention;
    const int rows = groups[group_of[layer]].blocks * block_size;
    const auto matrix = [&](DType type) {
      Matrix m = {nullptr, type, rows, a.kv_heads * a.head_dim};
      m.data = memory_.emplace_back(backend.allocate(m.bytes(), "key/value cache")).data();
      return m;
    };
    const Matrix keys = matrix(types.keys);
    layers_.push_back({keys, matrix(types.values)});
  }
}

}  // namespace inferno
