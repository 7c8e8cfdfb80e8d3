#include "backend/cuda/graph.h"

#include <algorithm>

#include "backend/cuda/check.h"

namespace inferno::cuda {
namespace {

// Two for each number of answers up to 64, whose tokens are in order or gathered.
constexpr std::size_t max_graphs = 128;

class Inside {
 public:
  explicit Inside(bool& flag) : flag_(flag) { flag_ = true; }
  ~Inside() { flag_ = false; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  bool& flag_;
};

}  // namespace

GraphCache::~GraphCache() {
  clear();
}

void GraphCache::clear() {
  for (auto& [key, entry] : graphs_) {
    if (entry.graph != nullptr) cudaGraphExecDestroy(entry.graph);
  }
  graphs_.clear();
}

void GraphCache::forget_oldest() {
  const auto oldest = std::min_element(graphs_.begin(), graphs_.end(), [](const auto& a, const auto& b) {
    return a.second.last_use < b.second.last_use;
  });
  if (oldest->second.graph != nullptr) check(cudaGraphExecDestroy(oldest->second.graph));
  graphs_.erase(oldest);
}

cudaGraphExec_t GraphCache::record(const std::function<void()>& body) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  try {
    body();
  } catch (...) {
    cudaStreamEndCapture(stream_, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  check(cudaStreamEndCapture(stream_, &graph));
  cudaGraphExec_t ready = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&ready, graph, 0);
  cudaGraphDestroy(graph);
  check(status);
  return ready;
}

void GraphCache::replay(std::span<const std::uint64_t> key, const std::function<void()>& body) {
  if (inside_) return body();
  const Inside inside(inside_);
  const auto entry = graphs_.find(key);
  if (entry == graphs_.end()) {
    graphs_[Key(key.begin(), key.end())].last_use = ++uses_;
    body();
    if (graphs_.size() > max_graphs) forget_oldest();
    return;
  }
  entry->second.last_use = ++uses_;
  if (entry->second.graph == nullptr) {
    entry->second.graph = record(body);
    ++counts_.recorded;
  } else {
    ++counts_.replayed;
  }
  check(cudaGraphLaunch(entry->second.graph, stream_));
}

}  // namespace inferno::cuda
