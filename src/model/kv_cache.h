// Memory for keys and values, one pair of matrices for each layer. Who owns which block is the caller's
// affair.
#pragma once

#include <span>
#include <vector>

#include "backend/backend.h"
#include "spec/model_spec.h"

namespace inferno {

// Bytes of keys and values one token needs in the layers of one window.
std::size_t cache_bytes_per_token(const ModelSpec& spec, int window, DType type);

class KvCache {
 public:
  // blocks[g] of block_size tokens for each layer of window_groups(spec)[g].
  KvCache(const ModelSpec& spec, Backend& backend, std::span<const int> blocks, int block_size);

  std::span<const KvLayer> layers() const { return layers_; }

 private:
  std::vector<Buffer> memory_;
  std::vector<KvLayer> layers_;
};

}  // namespace inferno
