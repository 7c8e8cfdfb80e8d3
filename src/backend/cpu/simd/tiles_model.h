// The tiles of AMX in plain C++, for tests on machines without them.
#pragma once

#include <cstdint>

#include "backend/cpu/simd/tile_shapes.h"

namespace inferno::cpu {
// NOLINTNEXTLINE: each including file must have a copy of its own, see kernels.h
namespace {

struct TilesOfThread {
  TileShapes shapes;
  alignas(64) std::uint8_t bytes[8][16][64];
};
thread_local TilesOfThread tiles_of_thread;

struct ModelTiles {
  static void configure(const TileShapes& shapes) {
    tiles_of_thread.shapes = shapes;
    __builtin_memset(tiles_of_thread.bytes, 0, sizeof(tiles_of_thread.bytes));
  }
  // A tile that is used before the next configure() has no rows and changes nothing, which tests notice.
  static void release() { configure({}); }

  template <int tile>
  static void zero() {
    __builtin_memset(tiles_of_thread.bytes[tile], 0, sizeof(tiles_of_thread.bytes[tile]));
  }
  template <int tile>
  static void load(const void* from, long stride) {
    zero<tile>();
    for (int r = 0; r < rows(tile); ++r) {
      __builtin_memcpy(row(tile, r), static_cast<const std::uint8_t*>(from) + r * stride, width(tile));
    }
  }
  template <int tile>
  static void store(void* to, long stride) {
    for (int r = 0; r < rows(tile); ++r) {
      __builtin_memcpy(static_cast<std::uint8_t*>(to) + r * stride, row(tile, r), width(tile));
    }
  }
  // TDPBSSD. Whole rows at a time, which compilers vectorize.
  template <int sums, int a, int b>
  static void dot_bytes() {
    const int count = static_cast<int>(width(a) / 4);
    for (int m = 0; m < rows(sums); ++m) {
      std::uint32_t totals[16];
      __builtin_memcpy(totals, row(sums, m), sizeof(totals));
      for (int k = 0; k < count; ++k) {
        std::int8_t left[64], right[64];
        for (int n = 0; n < 16; ++n) __builtin_memcpy(left + 4 * n, row(a, m) + 4 * k, 4);
        __builtin_memcpy(right, row(b, k), sizeof(right));
        std::int16_t products[64];
        for (int i = 0; i < 64; ++i) products[i] = static_cast<std::int16_t>(left[i] * right[i]);
        std::int32_t pairs[32];
        for (int i = 0; i < 32; ++i) pairs[i] = products[2 * i] + products[2 * i + 1];
        for (int n = 0; n < 16; ++n) {
          totals[n] += static_cast<std::uint32_t>(pairs[2 * n] + pairs[2 * n + 1]);
        }
      }
      __builtin_memcpy(row(sums, m), totals, sizeof(totals));
    }
  }

  // TDPBF16PS. The caller has set the processor to flush small numbers to zero.
  template <int sums, int a, int b>
  static void dot_bf16() {
    const int count = static_cast<int>(width(a) / 4);
    for (int m = 0; m < rows(sums); ++m) {
      float totals[16], even[16] = {}, odd[16] = {};
      __builtin_memcpy(totals, row(sums, m), sizeof(totals));
      for (int k = 0; k < count; ++k) {
        std::uint32_t left, right[16];
        __builtin_memcpy(&left, row(a, m) + 4 * k, sizeof(left));
        __builtin_memcpy(right, row(b, k), sizeof(right));
        for (int n = 0; n < 16; ++n) {
          even[n] = __builtin_fmaf(float_of(left << 16), float_of(right[n] << 16), even[n]);
          odd[n] = __builtin_fmaf(float_of(left & 0xFFFF0000), float_of(right[n] & 0xFFFF0000), odd[n]);
        }
      }
      for (int n = 0; n < 16; ++n) totals[n] += even[n] + odd[n];
      __builtin_memcpy(row(sums, m), totals, sizeof(totals));
    }
  }

 private:
  static float float_of(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }
  static int rows(int tile) { return tiles_of_thread.shapes.rows[tile]; }
  static std::size_t width(int tile) { return tiles_of_thread.shapes.row_bytes[tile]; }
  static std::uint8_t* row(int tile, int r) { return tiles_of_thread.bytes[tile][r]; }
};

}  // namespace
}  // namespace inferno::cpu
