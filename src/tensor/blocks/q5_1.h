// GGUF Q5_1: 32 five-bit values under one f16 scale, raised by one f16 minimum. The bits lie as in Q5_0.
#pragma once

#include <cstdint>

#include "tensor/float16.h"

namespace inferno::blocks {

struct Q5_1 {
  static constexpr int elements = 32;

  std::uint16_t scale;
  std::uint16_t minimum;
  std::uint8_t high[elements / 8];
  std::uint8_t nibbles[elements / 2];

  constexpr float operator[](int i) const {
    const int byte = nibbles[i % 16];
    const int low = i < 16 ? byte & 0xF : byte >> 4;
    const int fifth = (high[i / 8] >> (i % 8)) & 1;
    return f16_to_float(scale) * static_cast<float>(low | fifth << 4) + f16_to_float(minimum);
  }
};
static_assert(sizeof(Q5_1) == 24);

}  // namespace inferno::blocks
