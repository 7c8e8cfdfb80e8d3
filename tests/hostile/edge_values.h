// The values that a sweep writes into a length, an offset or a count.
#pragma once

#include <array>
#include <cstdint>

namespace inferno {

// The limits of the integer types and the neighbours of `value`.
inline std::array<std::uint64_t, 16> edge_values(std::uint64_t value) {
  constexpr std::uint64_t one = 1;
  return {0,
          1,
          one << 7,
          255,
          one << 15,
          one << 16,
          (one << 31) - 1,
          one << 31,
          (one << 32) - 1,
          one << 32,
          (one << 62),
          (one << 63) - 1,
          one << 63,
          ~std::uint64_t{0},
          value + 1,
          value - 1};
}

}  // namespace inferno
