// Sixteen lanes as two AVX2 registers, with the names of machine_avx512.h.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace inferno::cpu {
// NOLINTNEXTLINE: each including file must have a copy of its own, see kernels.h
namespace {

struct Avx2 {
  struct Floats {
    __m256 low, high;
  };
  struct Words {
    __m256i low, high;
  };
  using Ints = Words;

  static constexpr int float_chains = 1;  // sums for each token; two for each of 4 do not fit the registers
  static constexpr int attend_queries = 2, attend_vectors = 2;

  static __m256i at(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
  static __m128i half_at(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }

  static Words line(const void* from) {
    Words x = {at(from), at(static_cast<const std::byte*>(from) + 32)};
    asm("" : "+x"(x.low), "+x"(x.high));  // see machine_avx512.h
    return x;
  }
  static Words less(Words a, Words b) {
    return {_mm256_sub_epi16(a.low, b.low), _mm256_sub_epi16(a.high, b.high)};
  }
  static Words words(int value) {
    const __m256i x = _mm256_set1_epi16(static_cast<short>(value));
    return {x, x};
  }
  template <int count>
  static Words right(Words x) {
    return {_mm256_srli_epi16(x.low, count), _mm256_srli_epi16(x.high, count)};
  }
  template <int count>
  static Words left(Words x) {
    return {_mm256_slli_epi16(x.low, count), _mm256_slli_epi16(x.high, count)};
  }
  static Words words_right_by(Words x, int count) {
    const __m128i n = _mm_cvtsi32_si128(count);
    return {_mm256_srl_epi16(x.low, n), _mm256_srl_epi16(x.high, n)};
  }
  static Words both(Words a, Words b) {
    return {_mm256_and_si256(a.low, b.low), _mm256_and_si256(a.high, b.high)};
  }
  static Words merge(Words low, Words high, Words mask) { return either(low, both(high, mask)); }
  using Table = __m256i;
  static Table table(const std::int8_t* entries) { return _mm256_broadcastsi128_si256(half_at(entries)); }
  static Words look_up(Table table, Words index) {
    // A byte index with its top bit set gives zero, so the entry lands alone in the upper byte.
    const auto one = [table](__m256i x) {
      const __m256i upper = _mm256_or_si256(_mm256_slli_epi16(_mm256_and_si256(x, _mm256_set1_epi16(15)), 8),
                                            _mm256_set1_epi16(0x80));
      return _mm256_srai_epi16(_mm256_shuffle_epi8(table, upper), 8);
    };
    return {one(index.low), one(index.high)};
  }

  static Ints no_ints() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  static Ints ints(int value) { return {_mm256_set1_epi32(value), _mm256_set1_epi32(value)}; }
  static Ints bytes(const std::uint8_t* from) {
    const __m128i x = half_at(from);
    return {_mm256_cvtepu8_epi32(x), _mm256_cvtepu8_epi32(_mm_srli_si128(x, 8))};
  }
  static Ints signed_bytes(const std::int8_t* from) {
    const __m128i x = half_at(from);
    return {_mm256_cvtepi8_epi32(x), _mm256_cvtepi8_epi32(_mm_srli_si128(x, 8))};
  }
  static Ints halves(const std::uint16_t* from) {
    return {_mm256_cvtepu16_epi32(half_at(from)), _mm256_cvtepu16_epi32(half_at(from + 8))};
  }
  static Ints add(Ints a, Ints b) {
    return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
  }
  static Ints masked(Ints a, int mask) { return both(a, ints(mask)); }
  static Ints either(Ints a, Ints b) {
    return {_mm256_or_si256(a.low, b.low), _mm256_or_si256(a.high, b.high)};
  }
  static Ints larger(Ints a, Ints b) {
    return {_mm256_max_epi32(a.low, b.low), _mm256_max_epi32(a.high, b.high)};
  }
  static Ints right_by(Ints a, int count) {
    const __m128i n = _mm_cvtsi32_si128(count);
    return {_mm256_srl_epi32(a.low, n), _mm256_srl_epi32(a.high, n)};
  }
  template <int count>
  static Ints right_signed(Ints a) {
    return {_mm256_srai_epi32(a.low, count), _mm256_srai_epi32(a.high, count)};
  }
  static Ints left_by(Ints a, int count) {
    const __m128i n = _mm_cvtsi32_si128(count);
    return {_mm256_sll_epi32(a.low, n), _mm256_sll_epi32(a.high, n)};
  }
  static int largest(Ints a) {
    const __m256i x = _mm256_max_epi32(a.low, a.high);
    __m128i y = _mm_max_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    y = _mm_max_epi32(y, _mm_shuffle_epi32(y, 0x4E));
    return _mm_cvtsi128_si32(_mm_max_epi32(y, _mm_shuffle_epi32(y, 0xB1)));
  }
  static int total(Ints a) {
    const __m256i x = _mm256_add_epi32(a.low, a.high);
    __m128i y = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    y = _mm_add_epi32(y, _mm_shuffle_epi32(y, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(y, _mm_shuffle_epi32(y, 0xB1)));
  }
  static Ints rounded(Floats a) { return {_mm256_cvtps_epi32(a.low), _mm256_cvtps_epi32(a.high)}; }
  static Floats to_floats(Ints a) { return {_mm256_cvtepi32_ps(a.low), _mm256_cvtepi32_ps(a.high)}; }
  static Floats as_floats(Ints a) { return {_mm256_castsi256_ps(a.low), _mm256_castsi256_ps(a.high)}; }
  static Ints as_ints(Floats a) { return {_mm256_castps_si256(a.low), _mm256_castps_si256(a.high)}; }
  static void store_words(std::int16_t* to, Ints a, Ints b) {
    // packs works within 128-bit lanes: the permutation puts the quarters back in order.
    const auto pack = [](Ints x) {
      return _mm256_permute4x64_epi64(_mm256_packs_epi32(x.low, x.high), 0xD8);
    };
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), pack(a));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 16), pack(b));
  }
  static void store_ints(std::int32_t* to, Ints a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), a.low);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 8), a.high);
  }

  static Floats no_floats() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static Floats floats(float value) { return {_mm256_set1_ps(value), _mm256_set1_ps(value)}; }
  static Floats load(const float* from) { return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)}; }
  static Floats load_some(const float* from, int count) {
    return {_mm256_maskload_ps(from, first(count)), _mm256_maskload_ps(from + 8, first(count - 8))};
  }
  static Floats from_halves(const std::uint16_t* from) {
    return {_mm256_cvtph_ps(half_at(from)), _mm256_cvtph_ps(half_at(from + 8))};
  }
  static Floats from_e4m3(const std::uint8_t* from) {
    const __m256i wide = _mm256_cvtepi8_epi16(half_at(from));
    const __m256i halves =
        _mm256_and_si256(_mm256_slli_epi16(wide, 7), _mm256_set1_epi16(static_cast<short>(0xBFFF)));
    return {_mm256_cvtph_ps(_mm256_castsi256_si128(halves)),
            _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1))};
  }
  static Floats even_bf16(Words x) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(x.low, 16)),
            _mm256_castsi256_ps(_mm256_slli_epi32(x.high, 16))};
  }
  static Floats odd_bf16(Words x) { return as_floats(masked(x, static_cast<int>(0xFFFF0000u))); }
  static void store(float* to, Floats x) {
    _mm256_storeu_ps(to, x.low);
    _mm256_storeu_ps(to + 8, x.high);
  }
  static void store_some(float* to, Floats x, int count) {
    _mm256_maskstore_ps(to, first(count), x.low);
    _mm256_maskstore_ps(to + 8, first(count - 8), x.high);
  }
  static Floats plus(Floats a, Floats b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
  }
  static Floats minus(Floats a, Floats b) {
    return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
  }
  static Floats times(Floats a, Floats b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
  }
  static Floats over(Floats a, Floats b) {
    return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
  }
  static Floats smaller(Floats a, Floats b) {
    return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
  }
  static Floats larger_of(Floats a, Floats b) {
    return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
  }
  static Floats fma(Floats a, Floats b, Floats c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  static float sum(Floats a) {
    const __m256 x = _mm256_add_ps(a.low, a.high);
    __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_add_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_add_ss(y, _mm_movehdup_ps(y)));
  }
  static float top(Floats a) {
    const __m256 x = _mm256_max_ps(a.low, a.high);
    __m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_max_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_max_ss(y, _mm_movehdup_ps(y)));
  }
  static Floats only(Floats x, int low, int high, Floats instead) {
    const auto one = [](__m256 inside, __m256 outside, int from, int to) {
      const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
      const __m256i out = _mm256_or_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(from), lane),
                                          _mm256_cmpgt_epi32(lane, _mm256_set1_epi32(to)));
      return _mm256_blendv_ps(inside, outside, _mm256_castsi256_ps(out));
    };
    return {one(x.low, instead.low, low, high), one(x.high, instead.high, low - 8, high - 8)};
  }

  static Ints dot(Ints sum, Words weights, const std::int32_t* pair) {
    const __m256i x = _mm256_set1_epi32(*pair);
    return {_mm256_add_epi32(sum.low, _mm256_madd_epi16(weights.low, x)),
            _mm256_add_epi32(sum.high, _mm256_madd_epi16(weights.high, x))};
  }

  static void transpose(float* to, std::ptrdiff_t stride, const float* const* rows, int count);

 private:
  static void transpose_square(float* to, std::ptrdiff_t stride, const __m256* rows);
  static __m256i first(int count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
};

inline void Avx2::transpose(float* to, std::ptrdiff_t stride, const float* const* rows, int count) {
  for (int group = 0; group < 16; group += 8) {
    Floats x[8];
    __m256 low[8], high[8];
    for (int j = 0; j < 8; ++j) {
      x[j] = load_some(rows[group + j], count);
      low[j] = x[j].low;
      high[j] = x[j].high;
    }
    transpose_square(to + group, stride, low);
    transpose_square(to + group + 8 * stride, stride, high);
  }
}

inline void Avx2::transpose_square(float* to, std::ptrdiff_t stride, const __m256* rows) {
  __m256 a[8], b[8];
  for (int j = 0; j < 4; ++j) {
    a[2 * j] = _mm256_unpacklo_ps(rows[2 * j], rows[2 * j + 1]);
    a[2 * j + 1] = _mm256_unpackhi_ps(rows[2 * j], rows[2 * j + 1]);
  }
  for (int j = 0; j < 2; ++j) {
    b[4 * j] = _mm256_shuffle_ps(a[4 * j], a[4 * j + 2], 0x44);
    b[4 * j + 1] = _mm256_shuffle_ps(a[4 * j], a[4 * j + 2], 0xEE);
    b[4 * j + 2] = _mm256_shuffle_ps(a[4 * j + 1], a[4 * j + 3], 0x44);
    b[4 * j + 3] = _mm256_shuffle_ps(a[4 * j + 1], a[4 * j + 3], 0xEE);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * stride, _mm256_permute2f128_ps(b[i], b[4 + i], 0x20));
    _mm256_storeu_ps(to + (4 + i) * stride, _mm256_permute2f128_ps(b[i], b[4 + i], 0x31));
  }
}

}  // namespace
}  // namespace inferno::cpu
