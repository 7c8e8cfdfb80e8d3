// Integer panels times tiles of 16 tokens on a unit that multiplies small matrices of bytes (AMX). An
// activation is 256 * high + low, two signed bytes; weights are unpacked to bytes once for all tiles. Sums of
// a unit are exact, and then treated as in multiply.h: a token gets the bits that the vector kernels give it.
//
// T is such a unit: eight tiles of up to 16 rows of 64 bytes, whose shapes `configure` sets for a thread.
#pragma once

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/codecs.h"
#include "backend/cpu/simd/elementwise.h"
#include "backend/cpu/simd/multiply.h"
#include "backend/cpu/simd/term_products.h"
#include "backend/cpu/simd/tile_shapes.h"

namespace inferno::cpu {
// NOLINTNEXTLINE: each including file must have a copy of its own, see kernels.h
namespace {

// The columns of 16 rows that share a scale. A line has four of them, in the order 0 2 1 3, of each row.
template <int unit>
struct UnpackedUnit {
  std::int8_t codes[unit / 4][4 * panel_rows];
  float scales[panel_rows], minima[panel_rows];
};
static_assert(sizeof(UnpackedUnit<16>) == 16 * unpacked_bytes_per_column);
static_assert(sizeof(UnpackedUnit<32>) < 32 * unpacked_bytes_per_column);

template <class M, HasIntegers B>
int unpack(std::byte* to, const std::byte* from, int blocks) {
  using C = Codec<M, B>;
  constexpr int units = B::elements / C::unit;
  const auto* panel = reinterpret_cast<const Panel<B>*>(from);
  auto* unpacked = reinterpret_cast<UnpackedUnit<C::unit>*>(to);
  for (int i = 0; i < blocks * units; ++i) {
    const Panel<B>& block = panel[i / units];
    const int u = i % units;
    UnpackedUnit<C::unit>& out = unpacked[i];
    constexpr int in_step = decltype(C::template open<0>(block, u))::pairs;
    repeat<C::unit / 4>([&]<int quad>() __attribute__((always_inline)) {
      const auto words = [&]<int pair>() __attribute__((always_inline)) {
        return C::template open<pair / in_step>(block, u).template words<pair % in_step>();
      };
      const auto even = M::both(words.template operator()<2 * quad>(), M::words(0xFF));
      const auto odd = M::template left<8>(words.template operator()<2 * quad + 1>());
      M::store_ints(reinterpret_cast<std::int32_t*>(out.codes[quad]), M::either(even, odd));
    });
    M::store(out.scales, C::scale(block, u));
    if constexpr (C::has_minimum) M::store(out.minima, C::minimum(block, u));
  }
  return blocks * units;
}

// Sums of a unit: [token, row] for each byte of the activations.
struct ByteSums {
  alignas(64) std::int32_t high[tile_tokens][panel_rows], low[tile_tokens][panel_rows];
};

template <class T, int unit>
[[gnu::always_inline]] inline void multiply_unit_bytes(ByteSums& sums, const UnpackedUnit<unit>& weights,
                                                       const std::int8_t* activations, int u) {
  constexpr int plane = tile_tokens * activation_group;  // bytes, as those of IntegerTile::bytes
  constexpr int per_group = activation_group / unit, line = 4 * panel_rows;
  const std::int8_t* high = activations + u / per_group * 2 * plane + u % per_group * unit;
  T::template zero<0>();
  T::template zero<1>();
  T::template load<4>(weights.codes, line);
  T::template load<2>(high, activation_group);
  T::template dot_bytes<0, 2, 4>();
  T::template load<3>(high + plane, activation_group);
  T::template dot_bytes<1, 3, 4>();
  T::template store<0>(sums.high, line);
  T::template store<1>(sums.low, line);
}

template <class M, int unit, bool has_minimum>
[[gnu::always_inline]] inline void add_unit_bytes(typename M::Floats (&sums)[tile_tokens],
                                                  const ByteSums& products, const UnpackedUnit<unit>& weights,
                                                  const IntegerTile& tile, int u) {
  const auto scale = M::load(weights.scales);
  const float* scales = tile.scales + u * unit / activation_group * tile_tokens;
  repeat<tile_tokens>([&]<int t>() __attribute__((always_inline)) {
    const auto total =
        M::add(M::template left_ints<8>(M::load_ints(products.high[t])), M::load_ints(products.low[t]));
    sums[t] = M::fma(M::to_floats(total), M::times(scale, M::floats(scales[t])), sums[t]);
  });
  if constexpr (has_minimum) {
    const float* in = (unit == 16 ? tile.sums16 : tile.sums32) + u * tile_tokens;
    const auto minimum = M::load(weights.minima);
    repeat<tile_tokens>([&]<int t>() __attribute__((always_inline)) {
      sums[t] = M::fma(minimum, M::floats(in[t]), sums[t]);
    });
  }
}

// Products are computed some units ahead: loads cannot be served from the stores of a tile before these reach
// the cache.
inline constexpr int units_ahead = 3;

template <class M, class T, int unit, bool has_minimum>
void multiply_unpacked(const PanelCall& call) {
  const auto* weights = reinterpret_cast<const UnpackedUnit<unit>*>(call.panel);
  // Instructions on tiles may change any memory that others know of. `sums` is known here alone, hence stays
  // in registers.
  typename M::Floats sums[tile_tokens], memory[tile_tokens];
  begin_sums<M>(memory, call);
  repeat<tile_tokens>([&]<int t>() __attribute__((always_inline)) { sums[t] = memory[t]; });
  ByteSums products[units_ahead + 1];
  const auto multiply = [&](int u) __attribute__((always_inline)) {
    if (u >= call.blocks) return;
    multiply_unit_bytes<T>(products[u % (units_ahead + 1)], weights[u], call.integers.bytes, u);
  };
  for (int u = 0; u < units_ahead; ++u) multiply(u);
  for (int u = 0; u < call.blocks; ++u) {
    multiply(u + units_ahead);
    add_unit_bytes<M, unit, has_minimum>(sums, products[u % (units_ahead + 1)], weights[u], call.integers, u);
  }
  repeat<tile_tokens>([&]<int t>() __attribute__((always_inline)) { memory[t] = sums[t]; });
  end_sums<M>(memory, call);
}

template <class M, class T>
PanelKernel unpacked_kernel(WeightFormat format) {
  return visit(format, []<Block B>(B) -> PanelKernel {
    if constexpr (HasIntegers<B>) {
      return multiply_unpacked<M, T, Codec<M, B>::unit, Codec<M, B>::has_minimum>;
    }
    return nullptr;
  });
}

template <class M>
int unpack_panel(WeightFormat format, std::byte* to, const std::byte* panel, int blocks) {
  return visit(format, [=]<Block B>(B) {
    if constexpr (HasIntegers<B>) return unpack<M, B>(to, panel, blocks);
    return 0;
  });
}

template <class M, class T>
void begin_tiles(WeightFormat format) {
  visit(format, []<Block B>(B) {
    if constexpr (std::same_as<B, blocks::Bf16>) {
      T::configure(term_shapes());
    } else if constexpr (HasIntegers<B>) {
      constexpr int unit = Codec<M, B>::unit;
      TileShapes shapes;
      for (const int sums : {0, 1}) shapes.set(sums, tile_tokens, 4 * panel_rows);
      for (const int activations : {2, 3}) shapes.set(activations, tile_tokens, unit);
      shapes.set(4, unit / 4, 4 * panel_rows);
      T::configure(shapes);
    }
  });
}

// One token of an IntegerTile of 16.
template <class M>
void quantize_bytes(const QuantizeCall& call) {
  constexpr int ints = 2 * tile_tokens * activation_group / 4;  // of a group
  for (int g = 0; g < call.cols / activation_group; ++g) {
    const Group<M> group = quantize_group<M>(call.in + g * activation_group);
    store_scales<M>(call, g, group);
    M::store_quads(call.low + g * ints, call.high + g * ints, group.a);
    M::store_quads(call.low + g * ints + 4, call.high + g * ints + 4, group.b);
  }
}

template <class M, class T>
inline constexpr TileUnit tile_unit = {.unpack = unpack_panel<M>,
                                       .begin = begin_tiles<M, T>,
                                       .end = T::release,
                                       .quantize = quantize_bytes<M>,
                                       .split = split_terms};

// Null for widths and formats that do not use the unit.
template <class M, class T>
PanelKernel tile_kernel(WeightFormat format, int width) {
  if (format == WeightFormat::bf16) return term_kernel<M, T>(width);
  return width == tile_tokens ? unpacked_kernel<M, T>(format) : nullptr;
}

}  // namespace
}  // namespace inferno::cpu
