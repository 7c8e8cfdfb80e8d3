// Results of a search on the hub, with the memory that each model needs. Sizes are exact if the hub lists the
// parameters by type; the context is an estimate unless the hub sends the configuration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hub/client.h"

namespace inferno {

// The memory that would hold a model: that of a usable GPU, else the machine's.
struct LocalMemory {
  std::string device;  // "GPU" or "memory"
  std::uint64_t bytes = 0;
  int cache_element = 4;  // bytes of one element of the KV cache
};
LocalMemory local_memory(const std::optional<std::string>& visible_gpus);  // CUDA_VISIBLE_DEVICES

struct SearchResult {
  std::string id, format, gated, updated;
  std::uint64_t parameters = 0, bytes = 0;  // 0: unknown
  std::int64_t downloads = 0, likes = 0;
  std::optional<bool> fits = {};  // nullopt: unknown
  int context = 0;                // tokens that fit; 0: none or unknown
  bool is_estimate = true;
};

SearchResult judge(const hub::FoundOnHub& found, const LocalMemory& memory);

// Bytes of weights by type: {"BF16": 10} is 20. Unknown types count as two bytes.
std::uint64_t weight_bytes(const std::map<std::string, std::uint64_t>& parameters);

// Elements that one token adds to the KV cache, from the configuration if it has the sizes. Otherwise an
// estimate: models with 1, 8 and 70 billion parameters have about 16, 64 and 160 thousand.
struct CacheElements {
  std::uint64_t per_token = 0;
  bool is_estimate = true;
  int context = 0;  // the maximum of the model; 0: unknown
};
CacheElements cache_elements(const hub::FoundOnHub& found, std::uint64_t parameters);

std::string search_table(const std::vector<SearchResult>& results, const LocalMemory& memory);
std::string search_json(const std::vector<SearchResult>& results);

}  // namespace inferno
