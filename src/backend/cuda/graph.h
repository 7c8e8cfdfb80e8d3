// Steps recorded once and replayed: a graph of 300 kernels is queued with one call instead of 300.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "backend/steps.h"

namespace inferno::cuda {

class GraphCache {
 public:
  explicit GraphCache(cudaStream_t stream) : stream_(stream) {}
  ~GraphCache();
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  // The first time a key is seen the body runs as it is, because it may still size workspaces; the second
  // time it is recorded, and from then on replayed. A body inside another is part of the outer one.
  void replay(std::span<const std::uint64_t> key, const std::function<void()>& body);
  bool is_inside() const { return inside_; }  // a body
  ReplayCounts counts() const { return counts_; }
  // For a new model: the old addresses then hold something else.
  void clear();

 private:
  using Key = std::vector<std::uint64_t>;
  // Compares whole keys, also with spans, so that a look-up copies nothing.
  struct KeyOrder {
    using is_transparent = void;
    bool operator()(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) const {
      return std::ranges::lexicographical_compare(a, b);
    }
  };
  struct Entry {
    cudaGraphExec_t graph = nullptr;
    std::uint64_t last_use = 0;
  };
  cudaGraphExec_t record(const std::function<void()>& body);
  void forget_oldest();

  cudaStream_t stream_;
  std::map<Key, Entry, KeyOrder> graphs_;
  std::uint64_t uses_ = 0;
  ReplayCounts counts_;
  bool inside_ = false;
};

}  // namespace inferno::cuda
