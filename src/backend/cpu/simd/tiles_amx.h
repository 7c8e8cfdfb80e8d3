// The tiles of AMX. Instructions name their tiles, so the numbers are template arguments; compilers'
// intrinsics take only literals.
#pragma once

#include "backend/cpu/simd/tile_shapes.h"

namespace inferno::cpu {
// NOLINTNEXTLINE: each including file must have a copy of its own, see kernels.h
namespace {

struct AmxTiles {
  // Zeroes all tiles of this thread.
  static void configure(const TileShapes& shapes) { asm volatile("ldtilecfg %0" ::"m"(shapes) : "memory"); }
  static void release() { asm volatile("tilerelease" ::: "memory"); }
  template <int tile>
  [[gnu::always_inline]] static void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(tile));
  }
  // Rows are `stride` bytes apart.
  template <int tile>
  [[gnu::always_inline]] static void load(const void* from, long stride) {
    asm volatile("tileloadd (%1,%2,1), %%tmm%c0" ::"i"(tile), "r"(from), "r"(stride) : "memory");
  }
  template <int tile>
  [[gnu::always_inline]] static void store(void* to, long stride) {
    asm volatile("tilestored %%tmm%c0, (%1,%2,1)" ::"i"(tile), "r"(to), "r"(stride) : "memory");
  }
  // sums[m][n] += four signed bytes of a[m] at 4 k times four of b[k] at 4 n, for all k, modulo 2^32.
  template <int sums, int a, int b>
  [[gnu::always_inline]] static void dot_bytes() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(a), "i"(b));
  }
  // sums[m][n] += a[m] * b[n] for 32 columns of BF16. Products of even and of odd columns are summed apart,
  // from zero and with fused additions; numbers below the normal ones are zero.
  template <int sums, int a, int b>
  [[gnu::always_inline]] static void dot_bf16() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(a), "i"(b));
  }
};

}  // namespace
}  // namespace inferno::cpu
