// Unquantized weights are blocks of one element, so every format takes the same path. Integers appear in
// checkpoints as masks and tables; they decode to the nearest float.
#pragma once

#include <cstdint>

#include "tensor/float16.h"

namespace inferno::blocks {

// A number the compiler itself knows.
template <class Number>
struct Plain {
  static constexpr int elements = 1;
  Number value;
  constexpr float operator[](int) const { return static_cast<float>(value); }
};
using F64 = Plain<double>;
using F32 = Plain<float>;
using I64 = Plain<std::int64_t>;
using I32 = Plain<std::int32_t>;
using I16 = Plain<std::int16_t>;
using I8 = Plain<std::int8_t>;
using U8 = Plain<std::uint8_t>;
static_assert(sizeof(F64) == 8 && sizeof(F32) == 4 && sizeof(I64) == 8 && sizeof(I32) == 4 &&
              sizeof(I16) == 2 && sizeof(I8) == 1 && sizeof(U8) == 1);

struct F16 {
  static constexpr int elements = 1;
  std::uint16_t bits;
  constexpr float operator[](int) const { return f16_to_float(bits); }
};
static_assert(sizeof(F16) == 2);

struct Bf16 {
  static constexpr int elements = 1;
  std::uint16_t bits;
  constexpr float operator[](int) const { return bf16_to_float(bits); }
};
static_assert(sizeof(Bf16) == 2);

struct F8_E4M3 {
  static constexpr int elements = 1;
  std::uint8_t bits;
  constexpr float operator[](int) const { return f8_e4m3_to_float(bits); }
};
static_assert(sizeof(F8_E4M3) == 1);

struct F8_E5M2 {
  static constexpr int elements = 1;
  std::uint8_t bits;
  constexpr float operator[](int) const { return f8_e5m2_to_float(bits); }
};
static_assert(sizeof(F8_E5M2) == 1);

}  // namespace inferno::blocks
