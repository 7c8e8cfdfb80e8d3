// Every code of every narrow float against its definition: sign, exponent around a bias, mantissa.
#include "tensor/float16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace inferno {
namespace {

struct Layout {
  int exponent_bits, mantissa_bits, bias;
};

// What a code means when its highest exponent is an ordinary one.
float meaning(unsigned code, Layout layout) {
  const unsigned mantissa = code & ((1u << layout.mantissa_bits) - 1);
  const unsigned exponent = (code >> layout.mantissa_bits) & ((1u << layout.exponent_bits) - 1);
  const bool negative = (code >> (layout.mantissa_bits + layout.exponent_bits)) != 0;
  const double fraction = std::ldexp(static_cast<double>(mantissa), -layout.mantissa_bits);
  const double magnitude = exponent == 0
                               ? std::ldexp(fraction, 1 - layout.bias)
                               : std::ldexp(1.0 + fraction, static_cast<int>(exponent) - layout.bias);
  return static_cast<float>(negative ? -magnitude : magnitude);
}

void expect_same_bits(float found, float expected, unsigned code) {
  EXPECT_EQ(std::bit_cast<std::uint32_t>(found), std::bit_cast<std::uint32_t>(expected)) << "code " << code;
}

TEST(Float16, EveryF16CodeMeansWhatItsBitsSay) {
  for (unsigned code = 0; code < 0x10000; ++code) {
    const float value = f16_to_float(static_cast<std::uint16_t>(code));
    if ((code & 0x7C00u) != 0x7C00u) {
      expect_same_bits(value, meaning(code, {5, 10, 15}), code);
    } else if ((code & 0x3FFu) != 0) {
      EXPECT_TRUE(std::isnan(value)) << code;
    } else {
      EXPECT_EQ(value, code == 0x7C00u ? INFINITY : -INFINITY);
    }
  }
}

TEST(Float16, EveryE4m3CodeMeansWhatItsBitsSay) {
  for (unsigned code = 0; code < 256; ++code) {
    const float value = f8_e4m3_to_float(static_cast<std::uint8_t>(code));
    if ((code & 0x7Fu) == 0x7Fu) {
      EXPECT_TRUE(std::isnan(value)) << code;
    } else {
      expect_same_bits(value, meaning(code, {4, 3, 7}), code);
    }
  }
  EXPECT_EQ(f8_e4m3_to_float(0x7E), 448.0f);
}

TEST(Float16, EveryE5m2CodeMeansWhatItsBitsSay) {
  for (unsigned code = 0; code < 256; ++code) {
    const float value = f8_e5m2_to_float(static_cast<std::uint8_t>(code));
    if ((code & 0x7Cu) != 0x7Cu) {
      expect_same_bits(value, meaning(code, {5, 2, 15}), code);
    } else if ((code & 3u) != 0) {
      EXPECT_TRUE(std::isnan(value)) << code;
    } else {
      EXPECT_EQ(value, code == 0x7Cu ? INFINITY : -INFINITY);
    }
  }
}

TEST(Float16, EveryE8m0CodeIsAPowerOfTwoButTheLast) {
  for (int code = 0; code < 255; ++code) {
    EXPECT_EQ(e8m0_to_float(static_cast<std::uint8_t>(code)), std::ldexp(1.0f, code - 127)) << code;
  }
  EXPECT_TRUE(std::isnan(e8m0_to_float(255)));
}

// Between neighbours the nearer one, in the middle the even one; beyond the largest value that one.
TEST(Float16, NarrowingToE4m3RoundsToNearestAndSaturates) {
  for (unsigned code = 0; code < 0x7E; ++code) {
    const float low = f8_e4m3_to_float(static_cast<std::uint8_t>(code));
    const float high = f8_e4m3_to_float(static_cast<std::uint8_t>(code + 1));
    const float middle = (low + high) / 2;
    const unsigned even = code % 2 == 0 ? code : code + 1;
    for (const float sign : {1.0f, -1.0f}) {
      const unsigned bit = sign < 0 ? 0x80u : 0u;
      EXPECT_EQ(float_to_f8_e4m3(sign * low), code | bit);
      EXPECT_EQ(float_to_f8_e4m3(sign * high), (code + 1) | bit);
      EXPECT_EQ(float_to_f8_e4m3(sign * std::nextafter(middle, low)), code | bit) << middle;
      EXPECT_EQ(float_to_f8_e4m3(sign * std::nextafter(middle, high)), (code + 1) | bit) << middle;
      EXPECT_EQ(float_to_f8_e4m3(sign * middle), even | bit) << middle;
    }
  }
  for (const float large : {448.1f, 464.0f, 1e30f, INFINITY}) {
    EXPECT_EQ(float_to_f8_e4m3(large), 0x7Eu);
    EXPECT_EQ(float_to_f8_e4m3(-large), 0xFEu);
  }
  EXPECT_EQ(float_to_f8_e4m3(NAN) & 0x7Fu, 0x7Fu);
}

TEST(Float16, NarrowingUndoesWidening) {
  for (unsigned code = 0; code < 0x10000; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    if (std::isnan(f16_to_float(bits))) {
      EXPECT_TRUE(std::isnan(f16_to_float(float_to_f16(f16_to_float(bits))))) << code;
    } else {
      EXPECT_EQ(float_to_f16(f16_to_float(bits)), bits);
    }
    if (std::isnan(bf16_to_float(bits))) {
      EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(bf16_to_float(bits))))) << code;
    } else {
      EXPECT_EQ(float_to_bf16(bf16_to_float(bits)), bits);
    }
  }
}

// Halfway between two neighbours the even one wins; a hair to either side, the nearer one.
TEST(Float16, NarrowingRoundsToTheNearestAndTiesToEven) {
  for (unsigned code = 0; code < 0x7BFF; code += 7) {
    const float low = f16_to_float(static_cast<std::uint16_t>(code));
    const float high = f16_to_float(static_cast<std::uint16_t>(code + 1));
    const float middle = 0.5f * (low + high);
    EXPECT_EQ(float_to_f16(middle), code % 2 == 0 ? code : code + 1);
    EXPECT_EQ(float_to_f16(std::nextafter(middle, 0.0f)), code);
    EXPECT_EQ(float_to_f16(-std::nextafter(middle, INFINITY)), (code + 1) | 0x8000u);
  }
  EXPECT_EQ(float_to_bf16(bf16_to_float(0x3F80) + 0x1p-8f), 0x3F80);
  EXPECT_EQ(float_to_bf16(bf16_to_float(0x3F81) + 0x1p-8f), 0x3F82);
}

TEST(Float16, NarrowingOverflowsToInfinity) {
  EXPECT_EQ(float_to_f16(65519.99f), 0x7BFF);
  EXPECT_EQ(float_to_f16(65520.0f), 0x7C00);
  EXPECT_EQ(float_to_f16(-INFINITY), 0xFC00);
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
}

}  // namespace
}  // namespace inferno
