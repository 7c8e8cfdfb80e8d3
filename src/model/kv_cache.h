// Device memory for keys and values, one pair of matrices for each layer. The caller decides which sequence
// owns which block.
#pragma once

#include <span>
#include <vector>

#include "backend/backend.h"
#include "spec/window_groups.h"

namespace inferno {

// What `choice` means on this backend. Error{unsupported} with the reason if the backend cannot store the
// model's keys and values like that.
CacheTypes choose_cache_types(const ModelSpec& spec, const Backend& backend, const CacheChoice& choice);

// Bytes of keys and values that one token takes in the layers of one window.
std::size_t cache_bytes_per_token(const ModelSpec& spec, int window, CacheTypes types);

class KvCache {
 public:
  // One group for each window of window_groups(spec), in that order; blocks hold block_size tokens.
  KvCache(const ModelSpec& spec, Backend& backend, CacheTypes types, std::span<const CacheGroup> groups,
          int block_size);

  std::span<const KvLayer> layers() const { return layers_; }

 private:
  std::vector<Buffer> memory_;
  std::vector<KvLayer> layers_;
};

}  // namespace inferno
