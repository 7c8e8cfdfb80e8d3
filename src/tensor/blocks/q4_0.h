// GGUF Q4_0: 32 four-bit values around 8 under one f16 scale. Byte j holds element j in its low nibble
// and element j + 16 in its high nibble.
#pragma once

#include <cstdint>

#include "tensor/float16.h"

namespace inferno::blocks {

struct Q4_0 {
  static constexpr int elements = 32;

  std::uint16_t scale;
  std::uint8_t nibbles[elements / 2];

  constexpr float operator[](int i) const {
    const int byte = nibbles[i % 16];
    const int code = i < 16 ? byte & 0xF : byte >> 4;
    return f16_to_float(scale) * static_cast<float>(code - 8);
  }
};
static_assert(sizeof(Q4_0) == 18);

}  // namespace inferno::blocks
