// GGUF Q5_0: 32 five-bit values around 16 under one f16 scale. The low four bits lie as in Q4_0, the fifth
// bits of all elements in order, least significant bit first.
#pragma once

#include <cstdint>

#include "tensor/float16.h"

namespace inferno::blocks {

struct Q5_0 {
  static constexpr int elements = 32;

  std::uint16_t scale;
  std::uint8_t high[elements / 8];
  std::uint8_t nibbles[elements / 2];

  constexpr float operator[](int i) const {
    const int byte = nibbles[i % 16];
    const int low = i < 16 ? byte & 0xF : byte >> 4;
    const int fifth = (high[i / 8] >> (i % 8)) & 1;
    return f16_to_float(scale) * static_cast<float>((low | fifth << 4) - 16);
  }
};
static_assert(sizeof(Q5_0) == 22);

}  // namespace inferno::blocks
