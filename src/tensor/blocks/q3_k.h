// GGUF Q3_K: 256 three-bit values around 4 in groups of 16, each under a six-bit scale around 32, all under
// one f16 factor.
#pragma once

#include <cstdint>

#include "tensor/float16.h"

namespace inferno::blocks {

struct Q3_K {
  static constexpr int elements = 256;

  std::uint8_t high[elements / 8];
  std::uint8_t quants[elements / 4];
  std::uint8_t groups[12];
  std::uint16_t scale;

  // The low four bits of the 16 scales fill eight bytes (g and g + 8 share one), the high two the last four
  // (g, g + 4, g + 8 and g + 12 share one).
  constexpr int group_scale(int group) const {
    const int low = (groups[group % 8] >> (group / 8 * 4)) & 0xF;
    const int top = (groups[8 + group % 4] >> (group / 4 * 2)) & 3;
    return (low | top << 4) - 32;
  }

  // The low two bits lie as in Q2_K; byte j of `high` holds the third bits of j, j + 32, ..., j + 224.
  constexpr float operator[](int i) const {
    const int low = (quants[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3;
    const int third = (high[i % 32] >> (i / 32)) & 1;
    const float step = f16_to_float(scale) * static_cast<float>(group_scale(i / 16));
    return step * static_cast<float>((low | third << 2) - 4);
  }
};
static_assert(sizeof(Q3_K) == 110);

}  // namespace inferno::blocks
