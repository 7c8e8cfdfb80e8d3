// Engine settings under which a batch must give each request the answer that it gets alone.
#pragma once

#include <string>
#include <vector>

namespace inferno::testing {

struct BatchVariant {
  std::string model;
  int chunk;
  bool prefix_cache;
  bool small_pool;
  std::string cache = "auto";  // type of the KV cache
};

inline std::vector<BatchVariant> all_variants(const std::vector<int>& chunks,
                                              const std::string& cache = "auto") {
  std::vector<BatchVariant> out;
  for (const char* model : {"plain", "windows"}) {
    for (const int chunk : chunks) {
      for (const bool prefix_cache : {false, true}) {
        for (const bool small_pool : {false, true})
          out.push_back({model, chunk, prefix_cache, small_pool, cache});
      }
    }
  }
  return out;
}

inline std::string name_of(const BatchVariant& variant) {
  return variant.model + (variant.cache == "auto" ? "" : "_" + variant.cache) + "_chunk_" +
         std::to_string(variant.chunk) + (variant.prefix_cache ? "_prefix_cache" : "") +
         (variant.small_pool ? "_small_pool" : "");
}

}  // namespace inferno::testing
