// What a search on the hub found, with what it would take here. Sizes are exact where the hub tells the
// parameters by type; the context is an estimate from the number of parameters unless the configuration comes
// along.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hub/client.h"

namespace inferno {

// The memory that would hold a model: a GPU's where one can be used, else the machine's.
struct HomeMemory {
  std::string device;  // "GPU" or "memory"
  std::uint64_t bytes = 0;
  int cache_element = 4;  // bytes of one number in the cache
};
HomeMemory home_memory(const std::optional<std::string>& visible_gpus);  // CUDA_VISIBLE_DEVICES

struct SearchResult {
  std::string id, format, gated, updated;
  std::uint64_t parameters = 0, bytes = 0;  // 0 when not known
  std::int64_t downloads = 0, likes = 0;
  std::optional<bool> fits = {};  // nullopt when the size is not known
  int context = 0;                // tokens that would fit; 0 when none or not known
  bool is_estimate = true;
};

SearchResult judge(const hub::FoundOnHub& found, const HomeMemory& home);

// Bytes of weights by type: {"BF16": 10} is 20. Types that nobody knows count as two bytes.
std::uint64_t weight_bytes(const std::map<std::string, std::uint64_t>& parameters);

// Numbers that one token adds to the cache. From the configuration when it has the sizes, else from
// experience: models of 1, 8 and 70 billion parameters keep about 16, 64 and 160 thousand.
struct CacheNumbers {
  std::uint64_t per_token = 0;
  bool is_estimate = true;
  int context = 0;  // the model's own; 0 when not known
};
CacheNumbers cache_numbers(const hub::FoundOnHub& found, std::uint64_t parameters);

std::string search_table(const std::vector<SearchResult>& results, const HomeMemory& home);
std::string search_json(const std::vector<SearchResult>& results);

}  // namespace inferno
