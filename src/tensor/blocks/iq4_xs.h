// GGUF IQ4_XS: 256 indices into IQ4_NL's table in groups of 32, each under a six-bit scale around 32, all
// under one f16 factor.
#pragma once

#include <cstdint>

#include "tensor/blocks/iq4_nl.h"
#include "tensor/float16.h"

namespace inferno::blocks {

struct Iq4_XS {
  static constexpr int elements = 256;

  std::uint16_t scale;
  std::uint16_t group_high;  // two bits a group, the first group lowest
  std::uint8_t group_low[elements / 64];
  std::uint8_t nibbles[elements / 2];

  constexpr int group_scale(int group) const {
    const int low = (group_low[group / 2] >> (group % 2 * 4)) & 0xF;
    const int top = (group_high >> (2 * group)) & 3;
    return (low | top << 4) - 32;
  }

  // Within each group of 32 the nibbles lie as in Q4_0.
  constexpr float operator[](int i) const {
    const int code = (nibbles[i / 32 * 16 + i % 16] >> (i % 32 / 16 * 4)) & 0xF;
    const float step = f16_to_float(scale) * static_cast<float>(group_scale(i / 32));
    return step * static_cast<float>(iq4_value(code));
  }
};
static_assert(sizeof(Iq4_XS) == 136);

}  // namespace inferno::blocks
