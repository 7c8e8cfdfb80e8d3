// Which tokens chose which experts: token by token, and sorted by expert.
#pragma once

#include <algorithm>
#include <cstdint>

namespace inferno::cuda {

struct Chosen {
  const std::int32_t* experts = nullptr;  // [choices]
  const float* shares = nullptr;
  std::int32_t active = 1, choices = 0;
};

// Choices sorted by expert, for matrix products of many tokens.
struct Sorted {
  std::int32_t* counts = nullptr;       // [experts]
  std::int32_t* starts = nullptr;       // [experts]
  std::int32_t* places = nullptr;       // [choices]: where each choice stands
  std::int32_t* tokens = nullptr;       // [choices]: by place
  std::int32_t* tile_expert = nullptr;  // [tiles]; -1 behind the last
  std::int32_t* tile_first = nullptr;   // [tiles]: the place it begins at
  std::int32_t* tile_rows = nullptr;    // [tiles]: how many places it has; 0 behind the last
};

// How many tiles of `rows` there can be, however choices fall.
constexpr int max_tiles(std::int64_t choices, int experts, int rows) {
  return static_cast<int>(std::min<std::int64_t>(choices, choices / rows + experts));
}

}  // namespace inferno::cuda
