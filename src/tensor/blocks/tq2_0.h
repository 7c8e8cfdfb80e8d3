// GGUF TQ2_0: 256 ternary values, two bits each (0, 1, 2 mean -1, 0, 1), under one f16 scale.
#pragma once

#include <cstdint>

#include "tensor/float16.h"

namespace inferno::blocks {

struct Tq2_0 {
  static constexpr int elements = 256;

  std::uint8_t quants[elements / 4];
  std::uint16_t scale;

  // Each half of the block spreads 128 values over 32 bytes: byte j holds j, j + 32, j + 64 and j + 96.
  constexpr float operator[](int i) const {
    const int code = (quants[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3;
    return f16_to_float(scale) * static_cast<float>(code - 1);
  }
};
static_assert(sizeof(Tq2_0) == 66);

}  // namespace inferno::blocks
