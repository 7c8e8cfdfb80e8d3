// BF16 panels on a unit that multiplies small matrices of BF16 (AMX). An activation is the sum of two BF16
// terms, which keeps 16 bits of its mantissa. The unit sums even and odd columns of 32 apart, flushes small
// numbers to zero and adds both sums to those of earlier columns. The kernel for few tokens does the same
// with vectors, operation by operation, so that a token gets the same bits from both.
#pragma once

#include <immintrin.h>

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/elementwise.h"
#include "backend/cpu/simd/multiply.h"
#include "backend/cpu/simd/tile_shapes.h"

namespace inferno::cpu {
// NOLINTNEXTLINE: each including file must have a copy of its own, see kernels.h
namespace {

inline constexpr int step_columns = 32, step_lines = step_columns / 2;  // of one instruction
inline constexpr int chunk_steps = tile_columns / step_columns;

// Makes numbers below the normal ones zero, in operands and results; returns what _mm_setcsr() restores. An
// object with a destructor would bring in the exception handler of other code.
inline unsigned flush_to_zero() {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);
  return before;
}

// The nearest BF16 numbers as floats, ties to even; of a NaN, a NaN.
inline __m512i nearest_bf16(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x), upper = _mm512_set1_epi32(static_cast<int>(0xFFFF0000));
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i nearest = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
  const __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  const __m512i any = _mm512_mask_or_epi32(nearest, is_nan, bits, _mm512_set1_epi32(0x400000));
  return _mm512_and_si512(any, upper);
}

// Terms of 16 activations, as floats. One that is not finite has no second term.
struct Terms {
  __m512i high, low;
  explicit Terms(__m512 x) : high(nearest_bf16(x)) {
    const __m512 first = _mm512_castsi512_ps(high);
    const __m512i exponents = _mm512_set1_epi32(0x7F800000);
    const __mmask16 finite = _mm512_cmpneq_epi32_mask(_mm512_and_si512(high, exponents), exponents);
    low = _mm512_maskz_mov_epi32(finite, nearest_bf16(_mm512_sub_ps(x, first)));
  }
  static __m256i narrow(__m512i term) { return _mm512_cvtepi32_epi16(_mm512_srli_epi32(term, 16)); }
};

// One token.
inline void split_terms(const SplitCall& call) {
  const int width = call.width;
  for (int c = 0; c < call.cols; c += lanes) {
    const int count = call.cols - c < lanes ? call.cols - c : lanes;
    const Terms terms(_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), call.in + c));
    if (width >= tile_tokens) {  // columns up to a multiple of 32 are there, and zero
      auto* at = static_cast<std::uint16_t*>(call.terms) + c / step_columns * 2 * step_columns * width +
                 c % step_columns;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), Terms::narrow(terms.high));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(at + step_columns * width), Terms::narrow(terms.low));
      continue;
    }
    alignas(64) std::int32_t high[lanes], low[lanes];
    _mm512_store_si512(high, terms.high);
    _mm512_store_si512(low, terms.low);
    auto* at = static_cast<std::int32_t*>(call.terms) + 2 * c * width;
    for (int i = 0; i < count; ++i, at += 2 * width) {
      at[0] = high[i];
      at[width] = low[i];
    }
  }
}

// Columns of one step: `lines` pairs of them, of tokens [2 * lines, 2 terms, width].
template <class M, int width>
[[gnu::always_inline]] inline void add_step(typename M::Floats (&sums)[2 * width],
                                            const Panel<blocks::Bf16>* panel, const float* in, int lines) {
  typename M::Floats even[2 * width], odd[2 * width];
  repeat<2 * width>([&]<int i>() { even[i] = odd[i] = M::no_floats(); });
  for (int line = 0; line < lines; ++line, in += 4 * width) {
    const auto words = M::line(panel[line].values);
    const auto first = M::even_bf16(words), second = M::odd_bf16(words);
    repeat<2 * width>([&]<int i>() __attribute__((always_inline)) {
      even[i] = M::fma(first, M::floats(in[i]), even[i]);
      odd[i] = M::fma(second, M::floats(in[2 * width + i]), odd[i]);
    });
  }
  repeat<2 * width>([&]<int i>() { sums[i] = M::plus(sums[i], M::plus(even[i], odd[i])); });
}

// The terms' sums are added to the result after every `tile_columns` columns.
template <class M, int width>
void multiply_terms(const PanelCall& call) {
  const unsigned before = flush_to_zero();
  const auto* panel = reinterpret_cast<const Panel<blocks::Bf16>*>(call.panel);
  const auto* in = static_cast<const float*>(call.terms);
  typename M::Floats sums[width];
  begin_sums<M>(sums, call);
  for (int first = 0; first < call.blocks; first += chunk_steps * step_lines) {
    const int end = first + chunk_steps * step_lines;
    const int last = end < call.blocks ? end : call.blocks;
    typename M::Floats terms[2 * width];
    repeat<2 * width>([&]<int i>() { terms[i] = M::no_floats(); });
    for (int line = first; line < last; line += step_lines) {
      if (call.prefetches) prefetch<step_lines * sizeof(*panel)>(panel + line);
      const float* from = in + std::ptrdiff_t{4} * line * width;
      if (last - line >= step_lines) {
        add_step<M, width>(terms, panel + line, from, step_lines);
      } else {
        add_step<M, width>(terms, panel + line, from, last - line);
      }
    }
    repeat<width>([&]<int t>() { sums[t] = M::plus(sums[t], M::plus(terms[t], terms[width + t])); });
  }
  end_sums<M>(sums, call);
  _mm_setcsr(before);
}

// Terms of 16 tokens.
struct TermSums {
  alignas(64) float terms[2][tile_tokens][panel_rows];
};

template <class T, int groups>
[[gnu::always_inline]] inline void multiply_step(const void* panel, const std::uint16_t* in) {
  constexpr int bytes = 2 * step_columns, group = tile_tokens * step_columns, term = groups * group;
  T::template load<6>(panel, bytes);
  T::template load<4>(in, bytes);
  T::template dot_bf16<0, 4, 6>();
  T::template load<5>(in + term, bytes);
  T::template dot_bf16<1, 5, 6>();
  if constexpr (groups == 2) {
    T::template load<4>(in + group, bytes);
    T::template dot_bf16<2, 4, 6>();
    T::template load<5>(in + term + group, bytes);
    T::template dot_bf16<3, 5, 6>();
  }
}

template <class M>
void add_terms(const PanelCall& call, const TermSums& terms, int group) {
  PanelCall part = call;
  part.out += group * tile_tokens * call.stride;
  part.tokens = call.tokens - group * tile_tokens;
  if (part.tokens > tile_tokens) part.tokens = tile_tokens;
  typename M::Floats sums[tile_tokens];
  begin_sums<M>(sums, part);
  repeat<tile_tokens>([&]<int t>() {
    sums[t] = M::plus(sums[t], M::plus(M::load(terms.terms[0][t]), M::load(terms.terms[1][t])));
  });
  end_sums<M>(sums, part);
}

// One or two groups of 16 tokens.
template <class M, class T, int groups>
void multiply_term_tiles(const PanelCall& call) {
  const unsigned before = flush_to_zero();
  const auto* panel = reinterpret_cast<const Panel<blocks::Bf16>*>(call.panel);
  const auto* in = static_cast<const std::uint16_t*>(call.terms);
  constexpr int line_bytes = 4 * panel_rows;
  PanelCall part = call;
  for (int first = 0; first < call.blocks; first += chunk_steps * step_lines) {
    const int end = first + chunk_steps * step_lines;
    const int last = end < call.blocks ? end : call.blocks;
    T::template zero<0>();
    T::template zero<1>();
    T::template zero<2>();
    T::template zero<3>();
    int line = first;
    for (; line + step_lines <= last; line += step_lines) {
      multiply_step<T, groups>(panel + line, in + std::ptrdiff_t{4} * line * groups * tile_tokens);
    }
    if (line < last) {  // the last columns of the matrix
      alignas(64) Panel<blocks::Bf16> rest[step_lines] = {};
      __builtin_memcpy(rest, panel + line, static_cast<std::size_t>(last - line) * sizeof(*panel));
      multiply_step<T, groups>(rest, in + std::ptrdiff_t{4} * line * groups * tile_tokens);
    }
    TermSums terms[groups];
    T::template store<0>(terms[0].terms[0], line_bytes);
    T::template store<1>(terms[0].terms[1], line_bytes);
    if constexpr (groups == 2) {
      T::template store<2>(terms[1].terms[0], line_bytes);
      T::template store<3>(terms[1].terms[1], line_bytes);
    }
    for (int group = 0; group < groups; ++group) add_terms<M>(part, terms[group], group);
    part.continues = true;
  }
  _mm_setcsr(before);
}

inline TileShapes term_shapes() {
  TileShapes shapes;
  for (int tile = 0; tile < 7; ++tile) shapes.set(tile, tile_tokens, 2 * step_columns);
  return shapes;
}

// Null for other widths than those of ActivationTiles of terms.
template <class M, class T>
PanelKernel term_kernel(int width) {
  switch (width) {
    case 1: return multiply_terms<M, 1>;
    case 2: return multiply_terms<M, 2>;
    case 4: return multiply_terms<M, 4>;
    case tile_tokens: return multiply_term_tiles<M, T, 1>;
    case 2 * tile_tokens: return multiply_term_tiles<M, T, 2>;
    default: return nullptr;
  }
}

}  // namespace
}  // namespace inferno::cpu
