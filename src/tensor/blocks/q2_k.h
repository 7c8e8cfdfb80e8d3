// GGUF Q2_K: 256 two-bit values in groups of 16. Each group has a four-bit scale (low nibble) and a four-bit
// offset (high nibble), both under f16 factors of the whole block.
#pragma once

#include <cstdint>

#include "tensor/float16.h"

namespace inferno::blocks {

struct Q2_K {
  static constexpr int elements = 256;

  std::uint8_t groups[elements / 16];
  std::uint8_t quants[elements / 4];
  std::uint16_t scale;
  std::uint16_t minimum;

  // Each half of the block spreads 128 values over 32 bytes: byte j holds j, j + 32, j + 64 and j + 96.
  constexpr float operator[](int i) const {
    const int code = (quants[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3;
    const int group = groups[i / 16];
    const float step = f16_to_float(scale) * static_cast<float>(group & 0xF);
    return step * static_cast<float>(code) - f16_to_float(minimum) * static_cast<float>(group >> 4);
  }
};
static_assert(sizeof(Q2_K) == 84);

}  // namespace inferno::blocks
