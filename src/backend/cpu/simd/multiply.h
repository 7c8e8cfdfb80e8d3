// Panels times tiles: 16 rows of weights in the lanes of a vector, `width` tokens in as many registers.
//
// Integers: |code| <= 127 and |activation| <= 32767, so 32 products stay below 2^27 and the sum of a unit is
// exact. It is then converted to float and multiplied by both scales.
#pragma once

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/codecs.h"
#include "backend/cpu/simd/elementwise.h"

namespace inferno::cpu {
// NOLINTNEXTLINE: each including file must have a copy of its own, see kernels.h
namespace {

// Independent integer accumulators for each token, because few tokens alone do not fill the multiply
// pipeline.
template <int width>
inline constexpr int chains = width <= 2   ? 4
                              : width <= 4 ? 2
                                           : 1;

template <class M, int width>
void begin_sums(typename M::Floats (&sums)[width], const PanelCall& call) {
  repeat<width>([&]<int t>() {
    const float* from = call.continues ? call.out + t * call.stride : call.bias;
    sums[t] = t < call.tokens && from != nullptr ? M::load_some(from, call.rows) : M::no_floats();
  });
}

template <class M, int width>
void end_sums(const typename M::Floats (&sums)[width], const PanelCall& call) {
  repeat<width>([&]<int t>() {
    if (t >= call.tokens) return;
    if (call.rows == panel_rows) {
      M::store(call.out + t * call.stride, sums[t]);
    } else {
      M::store_some(call.out + t * call.stride, sums[t], call.rows);
    }
  });
}

// Prefetches what is read about a microsecond from now. The hardware prefetcher stops at the end of a page
// and, with several tokens, does not run far enough ahead.
template <std::size_t bytes>
[[gnu::always_inline]] inline void prefetch(const void* at) {
  constexpr std::size_t line = 64, ahead = 4096;
  repeat<static_cast<int>((bytes + line - 1) / line)>(
      [&]<int i>() { __builtin_prefetch(static_cast<const std::byte*>(at) + ahead + i * line, 0, 2); });
}

template <class Step>
concept InPlace = requires(const Step step) { step.template words_in_place<0>(); };

// The integer products of a unit. With one or two tokens, extracting the codes costs more than the products:
// the codes are then multiplied in place, each bit position has its own accumulator, and the sums are shifted
// back. The shift is exact; the sums stay below 2^31 because only every fourth product is added to one of
// them: 15 * 2^8 * 32767 * 8.
template <class M, class B, int width>
[[gnu::always_inline]] inline void multiply_unit(typename M::Ints (&totals)[width], const Panel<B>& panel,
                                                 int u, const std::int32_t* pairs) {
  using C = Codec<M, B>;
  using FirstStep = decltype(C::template open<0>(panel, u));
  constexpr int in_step = FirstStep::pairs;
  constexpr bool in_place = width <= 2 && in_step == 4 && InPlace<FirstStep>;
  constexpr int ways = in_place ? in_step : chains<width>;
  typename M::Ints parts[width][ways];
  repeat<width * ways>([&]<int i>() { parts[i / ways][i % ways] = M::no_ints(); });
  repeat<C::unit / 2 / in_step>([&]<int s>() __attribute__((always_inline)) {
    const auto step = C::template open<s>(panel, u);
    repeat<in_step>([&]<int i>() __attribute__((always_inline)) {
      constexpr int pair = s * in_step + i;
      typename M::Words words;
      if constexpr (in_place) {
        words = step.template words_in_place<i>();
      } else {
        words = step.template words<i>();
      }
      repeat<width>([&]<int t>() __attribute__((always_inline)) {
        parts[t][pair % ways] = M::dot(parts[t][pair % ways], words, pairs + pair * width + t);
      });
    });
  });
  repeat<width>([&]<int t>() __attribute__((always_inline)) {
    totals[t] = parts[t][0];
    repeat<ways - 1>([&]<int i>() __attribute__((always_inline)) {
      auto part = parts[t][i + 1];
      if constexpr (in_place) part = M::template right_signed<FirstStep::template weight<i + 1>>(part);
      totals[t] = M::add(totals[t], part);
    });
  });
}

template <class M, class B, int width>
concept InBytes = MultipliesBytes<M> && std::same_as<B, blocks::Q8_0> && width <= max_byte_tokens;

// The same with byte products, without widening. Weights are byte_offset<M> too large; that of the tile
// corrects it.
template <class M, int width>
[[gnu::always_inline]] inline void multiply_bytes(typename M::Ints (&totals)[width],
                                                  const Panel<blocks::Q8_0>& panel, const IntegerTile& tile,
                                                  int group) {
  constexpr int quads = activation_group / 4;
  typename M::Ints low[width], high[width];
  repeat<width>([&]<int t>() __attribute__((always_inline)) {
    low[t] = M::ints(tile.offsets[group * width + t]);
    high[t] = M::no_ints();
  });
  repeat<quads>([&]<int q>() __attribute__((always_inline)) {
    const auto bytes = M::line(panel.quads[q]);
    repeat<width>([&]<int t>() __attribute__((always_inline)) {
      const int at = (group * quads + q) * width + t;
      high[t] = M::dot_bytes(high[t], bytes, tile.high + at);
      low[t] = M::dot_bytes(low[t], bytes, tile.low + at);
    });
  });
  repeat<width>([&]<int t>()
                    __attribute__((always_inline)) { totals[t] = M::add(M::left_by(high[t], 8), low[t]); });
}

// One unit: its products, then both scales and the minimum.
template <class M, class B, int width>
[[gnu::always_inline]] inline void add_unit(typename M::Floats (&sums)[width], const Panel<B>& panel, int u,
                                            const IntegerTile& tile, int group) {
  using C = Codec<M, B>;
  typename M::Ints totals[width];
  if constexpr (InBytes<M, B, width>) {
    multiply_bytes<M, width>(totals, panel, tile, group);
  } else {
    multiply_unit<M, B, width>(totals, panel, u, tile.pairs + group * (C::unit / 2 * width));
  }
  const auto scale = C::scale(panel, u);
  repeat<width>([&]<int t>() __attribute__((always_inline)) {
    const int scale_at = group * C::unit / activation_group * width + t;
    const auto both = M::times(scale, M::floats(tile.scales[scale_at]));
    sums[t] = M::fma(M::to_floats(totals[t]), both, sums[t]);
  });
  if constexpr (C::has_minimum) {
    const float* in = (C::unit == 16 ? tile.sums16 : tile.sums32) + group * width;
    const auto minimum = C::minimum(panel, u);
    repeat<width>([&]<int t>() __attribute__((always_inline)) {
      sums[t] = M::fma(minimum, M::floats(in[t]), sums[t]);
    });
  }
}

template <class M, HasIntegers B, int width, bool prefetches>
[[gnu::always_inline]] inline void multiply_integers(const PanelCall& call) {
  constexpr int units = B::elements / Codec<M, B>::unit;
  const auto* panel = reinterpret_cast<const Panel<B>*>(call.panel);
  typename M::Floats sums[width];
  begin_sums<M>(sums, call);
  for (int b = 0; b < call.blocks; ++b) {
    for (int u = 0; u < units; ++u) {
      constexpr std::size_t share = sizeof(Panel<B>) / units;
      if constexpr (prefetches)
        prefetch<share>(reinterpret_cast<const std::byte*>(panel + b) + static_cast<std::size_t>(u) * share);
      add_unit<M, B, width>(sums, panel[b], u, call.integers, b * units + u);
    }
  }
  end_sums<M>(sums, call);
}

// With one or two tokens it depends on the CPU whether software prefetch helps.
template <class M, HasIntegers B, int width>
void multiply_integers(const PanelCall& call) {
  if (width > 2 || call.prefetches) {
    multiply_integers<M, B, width, true>(call);
  } else {
    multiply_integers<M, B, width, false>(call);
  }
}

// Columns of a float panel, one vector each.
template <class M, int column>
typename M::Floats column_of(const Panel<blocks::F32>& panel) {
  return M::load(panel.values);
}
template <class M, int column>
typename M::Floats column_of(const Panel<blocks::F16>& panel) {
  return M::from_halves(panel.values);
}
template <class M, int column>
typename M::Floats column_of(const Panel<blocks::Bf16>& panel) {
  const auto line = M::line(panel.values);
  return column == 0 ? M::even_bf16(line) : M::odd_bf16(line);
}

// Columns [0, blocks * columns) of a tile. The number of accumulators per token is fixed by the registers
// that the widest tile has, because a token's result must not depend on the number of other tokens.
template <class M, HasPanel B, int width>
[[gnu::always_inline]] inline void add_columns(typename M::Floats (&sums)[width], const Panel<B>* panel,
                                               const float* in, int blocks, bool prefetches) {
  constexpr int ways = M::float_chains, columns = panel_columns<B>;
  constexpr int stride = ways > columns ? ways / columns : 1;  // blocks in one step
  typename M::Floats others[ways][width];                      // the first stays unused
  repeat<ways * width>([&]<int i>() { others[i / width][i % width] = M::no_floats(); });
  const auto step = [&]<int c>() __attribute__((always_inline)) {
    const auto weights = column_of<M, c % columns>(panel[c / columns]);
    repeat<width>([&]<int t>() __attribute__((always_inline)) {
      auto& sum = c % ways == 0 ? sums[t] : others[c % ways][t];
      sum = M::fma(weights, M::floats(in[c * width + t]), sum);
    });
  };
  for (; blocks >= stride; blocks -= stride, panel += stride, in += stride * columns * width) {
    if (prefetches) prefetch<stride * sizeof(Panel<B>)>(panel);
    repeat<stride * columns>(step);
  }
  for (; blocks > 0; --blocks, ++panel, in += columns * width) repeat<columns>(step);
  repeat<(ways - 1) * width>(
      [&]<int i>() { sums[i % width] = M::plus(sums[i % width], others[1 + i / width][i % width]); });
}

// The accumulators are combined after every `columns_together` columns, whether in one call or in several.
template <class M, HasPanel B, int width>
void multiply_floats(const PanelCall& call) {
  constexpr int columns = panel_columns<B>, at_once = columns_together / columns;
  const auto* panel = reinterpret_cast<const Panel<B>*>(call.panel);
  typename M::Floats sums[width];
  begin_sums<M>(sums, call);
  for (int b = 0; b < call.blocks; b += at_once) {
    const int blocks = call.blocks - b < at_once ? call.blocks - b : at_once;
    add_columns<M, B, width>(sums, panel + b, call.floats + std::ptrdiff_t{b} * columns * width, blocks,
                             width > 2 || call.prefetches);
  }
  end_sums<M>(sums, call);
}

// E4M3 codes: the products of a block are summed first, then multiplied by its scale. As in add_columns(),
// the number of accumulators does not depend on the number of tokens.
template <class M, HasScaledFloats B, int width>
void multiply_scaled_floats(const PanelCall& call) {
  constexpr int ways = M::float_chains, stride = 8;
  const auto* panel = reinterpret_cast<const Panel<B>*>(call.panel);
  const bool prefetches = width > 2 || call.prefetches;
  typename M::Floats sums[width];
  begin_sums<M>(sums, call);
  for (int b = 0; b < call.blocks; ++b) {
    const float* in = call.floats + std::ptrdiff_t{b} * B::elements * width;
    typename M::Floats parts[ways][width];
    repeat<ways * width>([&]<int i>() { parts[i / width][i % width] = M::no_floats(); });
    for (int c = 0; c < B::elements; c += stride, in += stride * width) {
      if (prefetches) prefetch<stride * panel_rows>(panel[b].codes[c]);
      repeat<stride>([&]<int i>() __attribute__((always_inline)) {
        const auto weights = M::from_e4m3(panel[b].codes[c + i]);
        repeat<width>([&]<int t>() __attribute__((always_inline)) {
          parts[i % ways][t] = M::fma(weights, M::floats(in[i * width + t]), parts[i % ways][t]);
        });
      });
    }
    const auto scale = M::load(panel[b].scales);
    repeat<width>([&]<int t>() __attribute__((always_inline)) {
      auto total = parts[0][t];
      repeat<ways - 1>([&]<int i>() { total = M::plus(total, parts[i + 1][t]); });
      sums[t] = M::fma(M::times(total, M::floats(256.0f)), scale, sums[t]);
    });
  }
  end_sums<M>(sums, call);
}

template <class M, HasPanel B, int width>
constexpr PanelKernel kernel_of() {
  if constexpr (HasIntegers<B>) {
    return multiply_integers<M, B, width>;
  } else if constexpr (HasScaledFloats<B>) {
    return multiply_scaled_floats<M, B, width>;
  } else {
    return multiply_floats<M, B, width>;
  }
}

// The kernel for one tile width; null if there is none.
template <class M, int... widths>
PanelKernel panel_kernel_among(WeightFormat format, int width) {
  return visit(format, [width]<Block B>(B) -> PanelKernel {
    PanelKernel found = nullptr;
    if constexpr (HasPanel<B>) {
      ((found = widths == width ? kernel_of<M, B, widths>() : found), ...);
    }
    return found;
  });
}

// The same for formats with integer kernels alone.
template <class M, int... widths>
PanelKernel integer_kernel_among(WeightFormat format, int width) {
  return visit(format, [width]<Block B>(B) -> PanelKernel {
    PanelKernel found = nullptr;
    if constexpr (HasIntegers<B>) {
      ((found = widths == width ? multiply_integers<M, B, widths> : found), ...);
    }
    return found;
  });
}

// The same for formats that are multiplied in bytes alone.
template <class M, int... widths>
PanelKernel byte_kernel_among(WeightFormat format, int width) {
  return visit(format, [width]<Block B>(B) -> PanelKernel {
    PanelKernel found = nullptr;
    if constexpr (HasIntegers<B> && (InBytes<M, B, widths> && ...)) {
      ((found = widths == width ? multiply_integers<M, B, widths> : found), ...);
    }
    return found;
  });
}

// [columns, 16] from one block of a panel.
template <class M>
void expand_block(WeightFormat format, const std::byte* block, float* out) {
  visit(format, [block, out]<Block B>(B) {
    if constexpr (HasIntegers<B>) {
      using C = Codec<M, B>;
      const auto& panel = *reinterpret_cast<const Panel<B>*>(block);
      for (int u = 0; u < B::elements / C::unit; ++u) {
        const auto scale = C::scale(panel, u);
        constexpr int in_step = decltype(C::template open<0>(panel, u))::pairs;
        repeat<C::unit / 2>([&]<int pair>() {
          const auto words = C::template open<pair / in_step>(panel, u).template words<pair % in_step>();
          repeat<2>([&]<int odd>() {
            // Multiplying one column of the pair by 1 and the other by 0 picks it out.
            const std::int32_t one = odd == 0 ? 1 : 1 << 16;
            auto values = M::times(M::to_floats(M::dot(M::no_ints(), words, &one)), scale);
            if constexpr (C::has_minimum) values = M::plus(values, C::minimum(panel, u));
            M::store(out + (u * C::unit + 2 * pair + odd) * panel_rows, values);
          });
        });
      }
    } else if constexpr (HasScaledFloats<B>) {
      const auto& panel = *reinterpret_cast<const Panel<B>*>(block);
      for (int c = 0; c < B::elements; ++c) {
        const auto values = M::times(M::from_e4m3(panel.codes[c]), M::floats(256.0f));
        M::store(out + c * panel_rows, M::times(values, M::load(panel.scales)));
      }
    } else if constexpr (HasPanel<B>) {
      const auto& panel = *reinterpret_cast<const Panel<B>*>(block);
      repeat<panel_columns<B>>([&]<int c>() { M::store(out + c * panel_rows, column_of<M, c>(panel)); });
    }
  });
}

}  // namespace
}  // namespace inferno::cpu
