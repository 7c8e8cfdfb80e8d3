// Steps recorded once and replayed: a graph of 300 kernels is queued with one call instead of 300.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <map>

namespace inferno::cuda {

class GraphCache {
 public:
  explicit GraphCache(cudaStream_t stream) : stream_(stream) {}
  ~GraphCache();
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  // The first time a key is seen the body runs as it is, because it may still size workspaces; the second
  // time it is recorded, and from then on replayed. A body inside another belongs to that.
  void replay(std::uint64_t key, const std::function<void()>& body);
  bool is_inside() const { return inside_; }  // a body
  // For a new model: whatever lies at the old addresses then means something else.
  void clear();

 private:
  struct Entry {
    cudaGraphExec_t graph = nullptr;
    std::uint64_t last_use = 0;
  };
  cudaGraphExec_t record(const std::function<void()>& body);
  void forget_oldest();

  cudaStream_t stream_;
  std::map<std::uint64_t, Entry> graphs_;
  std::uint64_t uses_ = 0;
  bool inside_ = false;
};

}  // namespace inferno::cuda
