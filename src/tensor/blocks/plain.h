// Unquantized weights are blocks of one element, so every format takes the same path.
#pragma once

#include <cstdint>

#include "tensor/float16.h"

namespace inferno::blocks {

struct F32 {
  static constexpr int elements = 1;
  float value;
  constexpr float operator[](int) const { return value; }
};

struct F16 {
  static constexpr int elements = 1;
  std::uint16_t bits;
  constexpr float operator[](int) const { return f16_to_float(bits); }
};

struct Bf16 {
  static constexpr int elements = 1;
  std::uint16_t bits;
  constexpr float operator[](int) const { return bf16_to_float(bits); }
};

}  // namespace inferno::blocks
