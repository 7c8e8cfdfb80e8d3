// GGUF IQ4_NL: 32 four-bit indices into a fixed table of 16 unevenly spaced values, under one f16 scale. The
// nibbles lie as in Q4_0.
#pragma once

#include <cstdint>

#include "tensor/float16.h"

namespace inferno::blocks {

// -127 -104 -83 -65 -49 -35 -22 -10 1 13 25 38 53 69 89 113, closer together near zero, where most weights
// are. A byte each in two words, because device code cannot index a constexpr array without copying it first.
constexpr int iq4_value(int code) {
  const std::uint64_t word = code < 8 ? 0xF6EADDCFBFAD9881u : 0x7159453526190D01u;
  return static_cast<std::int8_t>(word >> (8 * (code & 7)));
}
static_assert(iq4_value(0) == -127 && iq4_value(7) == -10 && iq4_value(8) == 1 && iq4_value(15) == 113);

struct Iq4_NL {
  static constexpr int elements = 32;

  std::uint16_t scale;
  std::uint8_t nibbles[elements / 2];

  constexpr float operator[](int i) const {
    const int byte = nibbles[i % 16];
    const int code = i < 16 ? byte & 0xF : byte >> 4;
    return f16_to_float(scale) * static_cast<float>(iq4_value(code));
  }
};
static_assert(sizeof(Iq4_NL) == 18);

}  // namespace inferno::blocks
