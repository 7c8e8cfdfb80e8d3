// GGUF Q5_K: 256 five-bit values in groups of 32, each with a six-bit scale and a six-bit offset under f16
// factors of the whole block.
#pragma once

#include <cstdint>

#include "tensor/blocks/k_scales.h"
#include "tensor/float16.h"

namespace inferno::blocks {

struct Q5_K {
  static constexpr int elements = 256;

  std::uint16_t scale;
  std::uint16_t minimum;
  KScales groups;
  std::uint8_t high[elements / 8];
  std::uint8_t nibbles[elements / 2];

  // The low four bits lie as in Q4_K; byte j of `high` holds the fifth bits of j, j + 32, ..., j + 224.
  constexpr float operator[](int i) const {
    const int low = (nibbles[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4)) & 0xF;
    const int fifth = (high[i % 32] >> (i / 32)) & 1;
    const float step = f16_to_float(scale) * static_cast<float>(groups.scale(i / 32));
    return step * static_cast<float>(low | fifth << 4) -
           f16_to_float(minimum) * static_cast<float>(groups.offset(i / 32));
  }
};
static_assert(sizeof(Q5_K) == 176);

}  // namespace inferno::blocks
