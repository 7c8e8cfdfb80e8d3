// GGUF Q4_K: 256 four-bit values in groups of 32, each with a six-bit scale and a six-bit offset under f16
// factors of the whole block.
#pragma once

#include <cstdint>

#include "tensor/blocks/k_scales.h"
#include "tensor/float16.h"

namespace inferno::blocks {

struct Q4_K {
  static constexpr int elements = 256;

  std::uint16_t scale;
  std::uint16_t minimum;
  KScales groups;
  std::uint8_t nibbles[elements / 2];

  // Two groups share 32 bytes: the first has the low nibbles, the second the high ones.
  constexpr float operator[](int i) const {
    const int code = (nibbles[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4)) & 0xF;
    const float step = f16_to_float(scale) * static_cast<float>(groups.scale(i / 32));
    return step * static_cast<float>(code) -
           f16_to_float(minimum) * static_cast<float>(groups.offset(i / 32));
  }
};
static_assert(sizeof(Q4_K) == 144);

}  // namespace inferno::blocks
