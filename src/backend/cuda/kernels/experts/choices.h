// Which tokens chose which experts: token by token, and sorted by expert.
#pragma once

#include <algorithm>
#include <cstdint>

namespace inferno::cuda {

// The experts of each token, in order of tokens.
struct Chosen {
  const std::int32_t* experts = nullptr;  // [choices]
  const float* shares = nullptr;
  std::int32_t active = 1, choices = 0;
};

// Choices sorted by expert, for matrix products of many tokens.
struct Sorted {
  std::int32_t* counts = nullptr;       // [experts]
  std::int32_t* starts = nullptr;       // [experts]
  std::int32_t* places = nullptr;       // [choices]: the row of each choice in sorted order
  std::int32_t* tokens = nullptr;       // [choices]: the token of each place
  std::int32_t* tile_expert = nullptr;  // [tiles]; -1 after the last tile
  std::int32_t* tile_first = nullptr;   // [tiles]: the tile's first place
  std::int32_t* tile_rows = nullptr;    // [tiles]: the tile's number of places; 0 after the last
};

// The largest possible number of tiles of `rows` places.
constexpr int max_tiles(std::int64_t choices, int experts, int rows) {
  return static_cast<int>(std::min<std::int64_t>(choices, choices / rows + experts));
}

}  // namespace inferno::cuda
