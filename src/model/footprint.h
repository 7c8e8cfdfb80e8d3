// How much device memory a model needs for weights, workspace and KV cache, computed from headers before a
// weight is read. `plan` prints it, loading enforces it, `search` and `doctor` judge with it, the engine
// sizes its cache with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/decoder.h"
#include "model/tensor_plan.h"
#include "spec/window_groups.h"

namespace inferno {

struct WeightFootprint {
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;         // matrices as stored, vectors and biases as f32
  std::uint64_t token_bytes = 0;   // read to decode one token: active experts and head, no embedding table
  std::uint64_t expert_bytes = 0;  // of all experts
  double active_share = 0.0;       // part of the experts that one token activates

  // Bytes that a decode step of `sequences` sequences reads, if every expert is chosen equally often.
  double step_bytes(int sequences) const;
};
WeightFootprint weight_footprint(const ModelSpec& spec, const TensorPlan& tensors);

// The share of the free memory that the KV cache may use unless a limit is given.
constexpr std::uint64_t cache_budget(std::uint64_t free_bytes) {
  return free_bytes / 2;
}

struct CacheLimits {
  int sequences = 1;          // that run at once
  int step_tokens = 512;      // rows of one step
  int block_size = 32;        // tokens
  std::size_t max_bytes = 0;  // 0: what the sequences need, within cache_budget()
};

struct CachePlan {
  std::vector<CacheGroup> groups;  // in the order of window_groups()
  std::size_t bytes = 0;
  std::size_t token_bytes = 0;  // of one token in all groups
  int context = 0;              // tokens one sequence may have: as asked, or fewer if the cache is smaller
  int full_sequences = 0;       // sequences of `context` tokens that fit at once
};

// Room for `context` tokens of each sequence if memory allows, else the same share of that for every group.
// Error{io} with the numbers if not even the windows of one sequence fit.
CachePlan plan_cache(const ModelSpec& spec, CacheTypes types, const CacheLimits& limits, int context,
                     std::size_t free_bytes);

// What a footprint depends on besides the model.
struct DeviceMemory {
  DType activations = DType::f32, cache = DType::f32;  // `cache`: unless another type is asked for
  std::uint64_t free_bytes = 0;
  const Backend* backend = nullptr;  // whose own workspaces count; null: none
};
DeviceMemory device_memory(const Backend& backend);

struct Footprint {
  WeightFootprint weights;
  std::uint64_t workspace = 0;  // activations of the largest step, rotary table, the backend's own
  std::uint64_t cache = 0;      // KV cache of `sequences` sequences of `context` tokens
  std::uint64_t available = 0;  // free on the device
  CacheTypes cache_types;
  int context = 0, sequences = 1;
  int model_context = 0;
  int max_context = 0;  // longest context that fits; 0: the weights alone do not

  struct Window {
    int window = 0;  // 0: every position is visible
    std::uint64_t token_bytes = 0;
  };
  std::vector<Window> windows;  // cache bytes of one token, by attention window

  std::uint64_t cache_token_bytes() const;  // of one token in all layers
  std::uint64_t total() const { return weights.bytes + workspace + cache; }
  // The minimum to run at all; the cache may be smaller than a full context needs.
  std::uint64_t required() const { return weights.bytes + workspace; }
  bool fits() const { return max_context >= context; }
  bool runs() const { return max_context > 0; }  // if need be with a shorter context
  // Bytes that decoding one token reads, `depth` tokens into a sequence.
  std::uint64_t read_per_token(int depth) const;
};

// `limits.context` 0 means the model's own. Error{invalid_request} if it is longer than that. The steps are
// those of `limits`; `cache.step_tokens` and `cache.max_bytes` are not read.
Footprint model_footprint(const ModelSpec& spec, const TensorPlan& tensors, const DeviceMemory& device,
                          const DecoderLimits& limits, const CacheLimits& cache = {});

// The same for a model of which only the spec and the size of its files are known. Cache and activations are
// exact for the spec. The weights are `weight_bytes`, which differ from the loaded ones by the vectors that
// are stored in 16 bits, below 1 %; the backend's workspaces assume one format for all weights.
Footprint estimated_footprint(const ModelSpec& spec, std::uint64_t weight_bytes, const DeviceMemory& device,
                              const DecoderLimits& limits, const CacheLimits& cache = {});

// Error{io} with the figures and what would fit, if weights and workspace do not fit the device.
void require_fit(const Footprint& footprint, const std::string& model, const DeviceInfo& device);

}  // namespace inferno
