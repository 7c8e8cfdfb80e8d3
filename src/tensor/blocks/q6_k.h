// GGUF Q6_K: 256 six-bit values around 32 in groups of 16, each under a signed byte, all under one f16
// factor.
#pragma once

#include <cstdint>

#include "tensor/float16.h"

namespace inferno::blocks {

struct Q6_K {
  static constexpr int elements = 256;

  std::uint8_t low[elements / 2];
  std::uint8_t high[elements / 4];
  std::int8_t groups[elements / 16];
  std::uint16_t scale;

  // Within each half of 128: byte j of `low` holds j and j + 64, byte j of `high` holds j, j + 32, j + 64 and
  // j + 96.
  constexpr float operator[](int i) const {
    const int half = i / 128;
    const int nibble = (low[half * 64 + i % 64] >> (i % 128 / 64 * 4)) & 0xF;
    const int top = (high[half * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3;
    const float step = f16_to_float(scale) * static_cast<float>(groups[i / 16]);
    return step * static_cast<float>((nibble | top << 4) - 32);
  }
};
static_assert(sizeof(Q6_K) == 210);

}  // namespace inferno::blocks
