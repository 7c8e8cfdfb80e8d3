// AVX-512 with VNNI, which multiplies and adds pairs, and fours of bytes, in one instruction.
#pragma once

#include "backend/cpu/simd/machine_avx512.h"

namespace inferno::cpu {
// NOLINTNEXTLINE: each including file must have a copy of its own, see kernels.h
namespace {

struct Vnni512 : Avx512 {
  static Ints dot(Ints sum, Words weights, const std::int32_t* pair) {
    return _mm512_dpwssd_epi32(sum, weights, _mm512_set1_epi32(*pair));
  }
  // Four unsigned bytes of each lane times four signed ones.
  static Ints dot_bytes(Ints sum, Words weights, const std::int32_t* quad) {
    return _mm512_dpbusd_epi32(sum, weights, _mm512_set1_epi32(*quad));
  }
  // 16 numbers as 256 * high + low, four in an int in the order 0 2 1 3.
  static void store_quads(std::int32_t* low, std::int32_t* high, Ints a) {
    const __m128i order = _mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
    const Ints upper = _mm512_srai_epi32(_mm512_add_epi32(a, _mm512_set1_epi32(128)), 8);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(low), _mm_shuffle_epi8(_mm512_cvtepi32_epi8(a), order));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(high), _mm_shuffle_epi8(_mm512_cvtepi32_epi8(upper), order));
  }
};

}  // namespace
}  // namespace inferno::cpu
