// Sixteen lanes as one AVX-512 register. The kernels are templates over this struct; the source file of each
// level adds `dot`.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace inferno::cpu {
// NOLINTNEXTLINE: each including file must have a copy of its own, see kernels.h
namespace {

struct Avx512 {
  using Floats = __m512;  // 16 floats
  using Words = __m512i;  // 32 int16
  using Ints = __m512i;   // 16 int32

  static constexpr int float_chains =
      2;  // accumulators per token: two for each of 12 tokens fit the registers
  // Accumulators of an attention tile, chosen to fit the registers.
  static constexpr int attend_queries = 4, attend_vectors = 4;

  // Whole numbers of 16 bits.
  static Words line(const void* from) {
    Words x = _mm512_loadu_si512(from);
    // Keeps the value in a register: the compiler would reload it for every use, and load ports are scarce.
    asm("" : "+v"(x));
    return x;
  }
  static Words less(Words a, Words b) { return _mm512_sub_epi16(a, b); }
  static Words words(int value) { return _mm512_set1_epi16(static_cast<short>(value)); }
  template <int count>
  static Words right(Words x) {
    return _mm512_srli_epi16(x, count);
  }
  template <int count>
  static Words left(Words x) {
    return _mm512_slli_epi16(x, count);
  }
  static Words words_right_by(Words x, int count) { return _mm512_srl_epi16(x, _mm_cvtsi32_si128(count)); }
  static Words both(Words a, Words b) { return _mm512_and_si512(a, b); }
  static Words merge(Words low, Words high, Words mask) {  // low | (high & mask)
    return _mm512_ternarylogic_epi64(low, high, mask, 0xF8);
  }
  // A table of 16 int8 by the low four bits of each word.
  using Table = __m512i;
  static Table table(const std::int8_t* entries) {
    const __m256i once = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(entries)));
    return _mm512_broadcast_i64x4(once);  // twice: vpermw reads a fifth bit, which then does not matter
  }
  static Words look_up(Table table, Words index) { return _mm512_permutexvar_epi16(index, table); }

  // 16 rows' integers.
  static Ints no_ints() { return _mm512_setzero_si512(); }
  static Ints ints(int value) { return _mm512_set1_epi32(value); }
  static Ints load_ints(const std::int32_t* from) { return _mm512_loadu_si512(from); }
  static Ints bytes(const std::uint8_t* from) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static Ints signed_bytes(const std::int8_t* from) {
    return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static Ints halves(const std::uint16_t* from) {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  static Ints add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
  static Ints masked(Ints a, int mask) { return _mm512_and_si512(a, ints(mask)); }
  static Ints either(Ints a, Ints b) { return _mm512_or_si512(a, b); }
  static Ints larger(Ints a, Ints b) { return _mm512_max_epi32(a, b); }
  static Ints right_by(Ints a, int count) { return _mm512_srl_epi32(a, _mm_cvtsi32_si128(count)); }
  template <int count>
  static Ints right_signed(Ints a) {
    return _mm512_srai_epi32(a, count);
  }
  template <int count>
  static Ints left_ints(Ints a) {
    return _mm512_slli_epi32(a, count);
  }
  static Ints left_by(Ints a, int count) { return _mm512_sll_epi32(a, _mm_cvtsi32_si128(count)); }
  static int largest(Ints a) { return _mm512_reduce_max_epi32(a); }
  static int total(Ints a) { return _mm512_reduce_add_epi32(a); }
  static Ints rounded(Floats a) { return _mm512_cvtps_epi32(a); }
  static Floats to_floats(Ints a) { return _mm512_cvtepi32_ps(a); }
  static Floats as_floats(Ints a) { return _mm512_castsi512_ps(a); }
  static Ints as_ints(Floats a) { return _mm512_castps_si512(a); }
  // 32 ints (two vectors) as 32 int16, in order.
  static void store_words(std::int16_t* to, Ints a, Ints b) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtsepi32_epi16(a));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 16), _mm512_cvtsepi32_epi16(b));
  }
  static void store_ints(std::int32_t* to, Ints a) { _mm512_storeu_si512(to, a); }

  // Floats.
  static Floats no_floats() { return _mm512_setzero_ps(); }
  static Floats floats(float value) { return _mm512_set1_ps(value); }
  static Floats load(const float* from) { return _mm512_loadu_ps(from); }
  static Floats load_some(const float* from, int count) { return _mm512_maskz_loadu_ps(first(count), from); }
  static Floats from_halves(const std::uint16_t* from) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  // 2^-8 of the values of 16 E4M3 codes other than NaN: sign, exponent and mantissa at their places in an
  // f16, whose exponent counts from 15 and not from 7.
  static Floats from_e4m3(const std::uint8_t* from) {
    const __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    const __m256i halves =
        _mm256_and_si256(_mm256_slli_epi16(wide, 7), _mm256_set1_epi16(static_cast<short>(0xBFFF)));
    return _mm512_cvtph_ps(halves);
  }
  static Floats even_bf16(Words x) { return _mm512_castsi512_ps(_mm512_slli_epi32(x, 16)); }
  static Floats odd_bf16(Words x) {
    return _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32(static_cast<int>(0xFFFF0000u))));
  }
  static void store(float* to, Floats x) { _mm512_storeu_ps(to, x); }
  static void store_some(float* to, Floats x, int count) { _mm512_mask_storeu_ps(to, first(count), x); }
  static Floats plus(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  static Floats minus(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
  static Floats times(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Floats over(Floats a, Floats b) { return _mm512_div_ps(a, b); }
  static Floats smaller(Floats a, Floats b) { return _mm512_min_ps(a, b); }
  static Floats larger_of(Floats a, Floats b) { return _mm512_max_ps(a, b); }
  static Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  static float sum(Floats a) { return _mm512_reduce_add_ps(a); }
  static float top(Floats a) { return _mm512_reduce_max_ps(a); }
  // x where low <= lane <= high, otherwise `instead`.
  static Floats only(Floats x, int low, int high, Floats instead) {
    const Ints lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __mmask16 inside =
        _mm512_cmpge_epi32_mask(lane, ints(low)) & _mm512_cmple_epi32_mask(lane, ints(high));
    return _mm512_mask_blend_ps(inside, instead, x);
  }

  // to[i * stride + j] = rows[j][i] for 16 x 16 elements, `count` of each row.
  static void transpose(float* to, std::ptrdiff_t stride, const float* const* rows, int count);

 private:
  static __mmask16 first(int count) { return static_cast<__mmask16>((1u << count) - 1u); }
};

inline void Avx512::transpose(float* to, std::ptrdiff_t stride, const float* const* rows, int count) {
  __m512 a[16], b[16];
  for (int j = 0; j < 16; ++j) a[j] = load_some(rows[j], count);
  for (int j = 0; j < 8; ++j) {
    b[2 * j] = _mm512_unpacklo_ps(a[2 * j], a[2 * j + 1]);
    b[2 * j + 1] = _mm512_unpackhi_ps(a[2 * j], a[2 * j + 1]);
  }
  // Now 4 x 4 squares: a[4 j + i] holds element 4 q + i of rows 4 j..4 j + 3 in quarter q.
  for (int j = 0; j < 4; ++j) {
    const auto pairs = [&](int k) { return _mm512_castps_pd(b[4 * j + k]); };
    a[4 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(pairs(0), pairs(2)));
    a[4 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(pairs(0), pairs(2)));
    a[4 * j + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(pairs(1), pairs(3)));
    a[4 * j + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(pairs(1), pairs(3)));
  }
  for (int i = 0; i < 4; ++i) {
    const __m512 low = _mm512_shuffle_f32x4(a[i], a[4 + i], 0x44);        // quarters 0 1 of rows 0..7
    const __m512 high = _mm512_shuffle_f32x4(a[i], a[4 + i], 0xEE);       // quarters 2 3
    const __m512 low2 = _mm512_shuffle_f32x4(a[8 + i], a[12 + i], 0x44);  // of rows 8..15
    const __m512 high2 = _mm512_shuffle_f32x4(a[8 + i], a[12 + i], 0xEE);
    store(to + i * stride, _mm512_shuffle_f32x4(low, low2, 0x88));
    store(to + (4 + i) * stride, _mm512_shuffle_f32x4(low, low2, 0xDD));
    store(to + (8 + i) * stride, _mm512_shuffle_f32x4(high, high2, 0x88));
    store(to + (12 + i) * stride, _mm512_shuffle_f32x4(high, high2, 0xDD));
  }
}

}  // namespace
}  // namespace inferno::cpu
