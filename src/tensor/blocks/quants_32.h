// Quantized formats whose blocks have 32 elements under one scale.
#pragma once

#include <cstdint>

#include "tensor/float16.h"

namespace inferno::blocks {

// Sixteen bytes hold 32 nibbles: byte j has element j in its low nibble and element j + 16 in its high one.
constexpr int nibble_at(const std::uint8_t* nibbles, int i) {
  const int byte = nibbles[i % 16];
  return i < 16 ? byte & 0xF : byte >> 4;
}

// GGUF Q8_0: 32 signed bytes under one f16 scale.
struct Q8_0 {
  static constexpr int elements = 32;

  std::uint16_t scale;
  std::int8_t quants[elements];

  constexpr float operator[](int i) const { return f16_to_float(scale) * static_cast<float>(quants[i]); }
};
static_assert(sizeof(Q8_0) == 34);

// GGUF Q4_0: 32 four-bit values around 8 under one f16 scale.
struct Q4_0 {
  static constexpr int elements = 32;

  std::uint16_t scale;
  std::uint8_t nibbles[elements / 2];

  constexpr float operator[](int i) const {
    const int code = nibble_at(nibbles, i);
    return f16_to_float(scale) * static_cast<float>(code - 8);
  }
};
static_assert(sizeof(Q4_0) == 18);

// GGUF Q4_1: 32 four-bit values under one f16 scale, plus one f16 minimum.
struct Q4_1 {
  static constexpr int elements = 32;

  std::uint16_t scale;
  std::uint16_t minimum;
  std::uint8_t nibbles[elements / 2];

  constexpr float operator[](int i) const {
    const int code = nibble_at(nibbles, i);
    return f16_to_float(scale) * static_cast<float>(code) + f16_to_float(minimum);
  }
};
static_assert(sizeof(Q4_1) == 20);

// GGUF Q5_0: 32 five-bit values around 16 under one f16 scale. `high` has the fifth bits of all elements in
// order, least significant bit first.
struct Q5_0 {
  static constexpr int elements = 32;

  std::uint16_t scale;
  std::uint8_t high[elements / 8];
  std::uint8_t nibbles[elements / 2];

  constexpr float operator[](int i) const {
    const int low = nibble_at(nibbles, i);
    const int fifth = (high[i / 8] >> (i % 8)) & 1;
    return f16_to_float(scale) * static_cast<float>((low | fifth << 4) - 16);
  }
};
static_assert(sizeof(Q5_0) == 22);

// GGUF Q5_1: 32 five-bit values under one f16 scale, plus one f16 minimum. The bits are laid out as in Q5_0.
struct Q5_1 {
  static constexpr int elements = 32;

  std::uint16_t scale;
  std::uint16_t minimum;
  std::uint8_t high[elements / 8];
  std::uint8_t nibbles[elements / 2];

  constexpr float operator[](int i) const {
    const int low = nibble_at(nibbles, i);
    const int fifth = (high[i / 8] >> (i % 8)) & 1;
    return f16_to_float(scale) * static_cast<float>(low | fifth << 4) + f16_to_float(minimum);
  }
};
static_assert(sizeof(Q5_1) == 24);

// IQ4_NL's table: -127 -104 -83 -65 -49 -35 -22 -10 1 13 25 38 53 69 89 113, closer together near zero, where
// most weights are. A byte each in two words, because device code cannot index a constexpr array without
// copying it first.
constexpr int iq4_value(int code) {
  const std::uint64_t word = code < 8 ? 0xF6EADDCFBFAD9881u : 0x7159453526190D01u;
  return static_cast<std::int8_t>(word >> (8 * (code & 7)));
}
static_assert(iq4_value(0) == -127 && iq4_value(7) == -10 && iq4_value(8) == 1 && iq4_value(15) == 113);

// GGUF IQ4_NL: 32 four-bit indices into a fixed table of 16 unevenly spaced values, under one f16 scale.
struct Iq4_NL {
  static constexpr int elements = 32;

  std::uint16_t scale;
  std::uint8_t nibbles[elements / 2];

  constexpr float operator[](int i) const {
    const int code = nibble_at(nibbles, i);
    return f16_to_float(scale) * static_cast<float>(iq4_value(code));
  }
};
static_assert(sizeof(Iq4_NL) == 18);

// OCP MXFP4: 32 four-bit E2M1 values under one E8M0 scale, nibbles in GGUF's order.
struct Mxfp4 {
  static constexpr int elements = 32;

  std::uint8_t exponent;
  std::uint8_t nibbles[elements / 2];

  constexpr float operator[](int i) const {
    const int code = nibble_at(nibbles, i);
    const int magnitude = code & 7;  // 0 .5 1 1.5 2 3 4 6
    const float value = magnitude < 4   ? 0.5f * static_cast<float>(magnitude)
                        : magnitude < 6 ? static_cast<float>(magnitude - 2)
                                        : static_cast<float>(2 * magnitude - 8);
    return (code & 8 ? -value : value) * e8m0_to_float(exponent);
  }
};
static_assert(sizeof(Mxfp4) == 17);
static_assert(Mxfp4{127, {0x07}}[0] == 6.0f && Mxfp4{128, {0xC0}}[16] == -4.0f);

}  // namespace inferno::blocks
