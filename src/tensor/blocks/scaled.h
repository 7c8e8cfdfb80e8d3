// Codes under a float32 scale: how the weights of quantized safetensors checkpoints (FP8, AWQ, GPTQ,
// compressed-tensors, NVFP4, bitsandbytes) are kept in memory. No file stores these blocks;
// checkpoint/quantized makes them while reading, without rounding anything. `count` is the number of elements
// under one scale.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "tensor/blocks/quants_32.h"
#include "tensor/float16.h"

namespace inferno::blocks {

// A float32 at any address, so that blocks need no padding.
struct PackedFloat {
  std::uint8_t bytes[4];
  constexpr float value() const {
    return std::bit_cast<float>(
        static_cast<std::uint32_t>(bytes[0]) | static_cast<std::uint32_t>(bytes[1]) << 8 |
        static_cast<std::uint32_t>(bytes[2]) << 16 | static_cast<std::uint32_t>(bytes[3]) << 24);
  }
  static constexpr PackedFloat of(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return {{static_cast<std::uint8_t>(bits), static_cast<std::uint8_t>(bits >> 8),
             static_cast<std::uint8_t>(bits >> 16), static_cast<std::uint8_t>(bits >> 24)}};
  }
};

// The code of element i: groups of 32 elements, each with the order of nibble_at().
constexpr int nibble_in_groups(const std::uint8_t* nibbles, int i) {
  return nibble_at(nibbles + i / 32 * 16, i % 32);
}

// E2M1: 0 .5 1 1.5 2 3 4 6 and their negatives.
constexpr float e2m1_to_float(int code) {
  const int magnitude = code & 7;
  const float value = magnitude < 4   ? 0.5f * static_cast<float>(magnitude)
                      : magnitude < 6 ? static_cast<float>(magnitude - 2)
                                      : static_cast<float>(2 * magnitude - 8);
  return (code & 8) != 0 ? -value : value;
}

// Four-bit integers with a zero point.
template <int count>
struct Int4 {
  static constexpr int elements = count;
  static constexpr bool is_scaled = true;

  PackedFloat scale;
  std::uint8_t zero;
  std::uint8_t nibbles[count / 2];

  constexpr float operator[](int i) const {
    return scale.value() * static_cast<float>(nibble_in_groups(nibbles, i) - zero);
  }
};
static_assert(sizeof(Int4<32>) == 21 && sizeof(Int4<64>) == 37 && sizeof(Int4<128>) == 69);

// Bytes from 0 to 255 with a zero point.
template <int count>
struct Int8 {
  static constexpr int elements = count;
  static constexpr bool is_scaled = true;

  PackedFloat scale;
  std::uint8_t zero;
  std::uint8_t codes[count];

  constexpr float operator[](int i) const { return scale.value() * static_cast<float>(codes[i] - zero); }
};
static_assert(sizeof(Int8<16>) == 21 && sizeof(Int8<32>) == 37 && sizeof(Int8<64>) == 69);

// E4M3 floats.
template <int count>
struct Fp8 {
  static constexpr int elements = count;
  static constexpr bool is_scaled = true;

  PackedFloat scale;
  std::uint8_t codes[count];

  constexpr float operator[](int i) const { return scale.value() * f8_e4m3_to_float(codes[i]); }
};
static_assert(sizeof(Fp8<32>) == 36 && sizeof(Fp8<128>) == 132);

// NVFP4: E2M1 floats, an E4M3 scale for every 16 of them, and the tensor's own factor.
template <int count>
struct Nvfp4 {
  static constexpr int elements = count;
  static constexpr bool is_scaled = true;

  PackedFloat factor;
  std::uint8_t scales[count / 16];
  std::uint8_t nibbles[count / 2];

  constexpr float operator[](int i) const {
    const float scale = factor.value() * f8_e4m3_to_float(scales[i / 16]);
    return scale * e2m1_to_float(nibble_in_groups(nibbles, i));
  }
};
static_assert(sizeof(Nvfp4<32>) == 22 && sizeof(Nvfp4<64>) == 40);

// The tables of bitsandbytes. NF4: quantiles of a normal distribution.
inline constexpr std::array<float, 16> nf4_table = {-1.0f,
                                                    -0.6961928009986877f,
                                                    -0.5250730514526367f,
                                                    -0.39491748809814453f,
                                                    -0.28444138169288635f,
                                                    -0.18477343022823334f,
                                                    -0.09105003625154495f,
                                                    0.0f,
                                                    0.07958029955625534f,
                                                    0.16093020141124725f,
                                                    0.24611230194568634f,
                                                    0.33791524171829224f,
                                                    0.44070982933044434f,
                                                    0.5626170039176941f,
                                                    0.7229568362236023f,
                                                    1.0f};
// FP4: twelfths of 0, 1/16, 8, 12, 4, 6, 2, 3 and their negatives.
inline constexpr std::array<float, 16> fp4_table = {
    0.0f / 12.0f,  0.0625f / 12.0f, 8.0f / 12.0f,  12.0f / 12.0f,    4.0f / 12.0f,  6.0f / 12.0f,
    2.0f / 12.0f,  3.0f / 12.0f,    -0.0f / 12.0f, -0.0625f / 12.0f, -8.0f / 12.0f, -12.0f / 12.0f,
    -4.0f / 12.0f, -6.0f / 12.0f,   -2.0f / 12.0f, -3.0f / 12.0f};

// Indices into a table of 16 floats.
template <int count, const std::array<float, 16>& table>
struct Table4 {
  static constexpr int elements = count;
  static constexpr bool is_scaled = true;

  PackedFloat scale;
  std::uint8_t nibbles[count / 2];

  static constexpr float value_of(int code) {
    // Device code cannot index a constexpr array of the namespace.
    constexpr float values[16] = {table[0],  table[1],  table[2],  table[3], table[4],  table[5],
                                  table[6],  table[7],  table[8],  table[9], table[10], table[11],
                                  table[12], table[13], table[14], table[15]};
    return values[code];
  }
  constexpr float operator[](int i) const { return value_of(nibble_in_groups(nibbles, i)) * scale.value(); }
};
template <int count>
using Nf4 = Table4<count, nf4_table>;
template <int count>
using Fp4 = Table4<count, fp4_table>;
static_assert(sizeof(Nf4<32>) == 20 && sizeof(Fp4<64>) == 36);

// One of the blocks in this file.
template <class B>
concept Scaled = requires { requires B::is_scaled; };

}  // namespace inferno::blocks
