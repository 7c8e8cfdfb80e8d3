// Results of a search on the hub, judged by the footprint that `plan` prints, as far as the hub's listing
// tells it: weights from the sizes that the hub lists, cache and workspace from the configuration if the hub
// sends all of it, else from what models of that size usually have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/download/fit.h"
#include "hub/client.h"

namespace inferno {

struct SearchResult {
  std::string id, format, gated, updated;
  std::string family = {};                  // "model_type" or "general.architecture"; empty if unknown
  bool is_supported = true;                 // false: of a family that Inferno does not support
  std::uint64_t parameters = 0, bytes = 0;  // 0: unknown
  std::int64_t downloads = 0, likes = 0;
  std::optional<bool> fits = {};  // nullopt: unknown
  int context = 0;                // tokens that fit; 0: none or unknown
  bool is_estimate = true;        // the configuration is unknown
};

SearchResult judge(const hub::FoundOnHub& found, const LocalMemory& memory);

// Bytes of weights by type: {"BF16": 10} is 20. Unknown types count as two bytes.
std::uint64_t weight_bytes(const std::map<std::string, std::uint64_t>& parameters);

// No row is wider than the screen (0: any width): columns are left out, the least important first, then names
// are shortened. A figure is never cut.
std::string search_table(const std::vector<SearchResult>& results, const LocalMemory& memory,
                         int screen_columns = 0);
std::string search_json(const std::vector<SearchResult>& results);

}  // namespace inferno
