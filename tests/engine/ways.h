// The ways in which a batch must give the answers of each request alone.
#pragma once

#include <string>
#include <vector>

namespace inferno::testing {

struct Way {
  std::string model;
  int chunk;
  bool prefix_cache;
  bool small_pool;
};

inline std::vector<Way> all_ways(const std::vector<int>& chunks) {
  std::vector<Way> out;
  for (const char* model : {"plain", "windows"}) {
    for (const int chunk : chunks) {
      for (const bool prefix_cache : {false, true}) {
        for (const bool small_pool : {false, true}) out.push_back({model, chunk, prefix_cache, small_pool});
      }
    }
  }
  return out;
}

inline std::string name_of(const Way& way) {
  return way.model + "_chunk_" + std::to_string(way.chunk) + (way.prefix_cache ? "_remembering" : "") +
         (way.small_pool ? "_small_pool" : "");
}

}  // namespace inferno::testing
