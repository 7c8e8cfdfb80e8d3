// GGUF Q4_1: 32 four-bit values under one f16 scale, raised by one f16 minimum. Byte j holds element j in
// its low nibble and element j + 16 in its high nibble.
#pragma once

#include <cstdint>

#include "tensor/float16.h"

namespace inferno::blocks {

struct Q4_1 {
  static constexpr int elements = 32;

  std::uint16_t scale;
  std::uint16_t minimum;
  std::uint8_t nibbles[elements / 2];

  constexpr float operator[](int i) const {
    const int byte = nibbles[i % 16];
    const int code = i < 16 ? byte & 0xF : byte >> 4;
    return f16_to_float(scale) * static_cast<float>(code) + f16_to_float(minimum);
  }
};
static_assert(sizeof(Q4_1) == 20);

}  // namespace inferno::blocks
