// Quantized panels as whole numbers. A codec walks over units (columns under one scale) and hands out each
// pair of columns as 32 int16; the unit's values are scale * number + minimum.
#pragma once

#include "backend/cpu/panels.h"
#include "backend/cpu/simd/repeat.h"

namespace inferno::cpu {
// NOLINTNEXTLINE: each including file must have a copy of its own, see kernels.h
namespace {

template <class M, class B>
struct Codec;

constexpr float zero_point(int code) {
  return static_cast<float>(-code);
}

// Pair `pair` of lines that hold `bits` bits a code; the bits above are not zero.
template <class M, int bits, int pair>
typename M::Words shifted(const Line* lines) {
  constexpr int slot = pair % pairs_in_line<bits>;
  return M::template right<slot * bits>(M::line(lines[pair / pairs_in_line<bits>]));
}

template <class M, int bits, int pair>
typename M::Words code(const Line* lines) {
  if constexpr (pair % pairs_in_line<bits> == pairs_in_line<bits> - 1) return shifted<M, bits, pair>(lines);
  return M::both(shifted<M, bits, pair>(lines), M::words((1 << bits) - 1));
}

// A code whose upper bits, `bits` of them, lie in a line of their own and belong at bit `place`.
template <class M, int bits, int place, int pair>
typename M::Words with_high(typename M::Words low, typename M::Words line) {
  constexpr int at = pair * bits;
  const typename M::Words mask = M::words(((1 << bits) - 1) << place);
  if constexpr (at > place) return M::merge(low, M::template right<at - place>(line), mask);
  return M::merge(low, M::template left<place - at>(line), mask);
}

template <class M>
struct Codec<M, blocks::Q8_0> {
  using P = Panel<blocks::Q8_0>;
  static constexpr int unit = 32;
  static constexpr bool has_minimum = false;
  static auto scale(const P& panel, int) { return M::from_halves(panel.scales); }
  template <int pair>
  static auto words(const P& panel, int) {
    return M::widen(panel.quants[pair]);
  }
};

template <class M>
struct Codec<M, blocks::Q4_0> {
  using P = Panel<blocks::Q4_0>;
  static constexpr int unit = 32;
  static constexpr bool has_minimum = false;
  static auto scale(const P& panel, int) { return M::from_halves(panel.scales); }
  template <int pair>
  static auto words(const P& panel, int) {
    constexpr int slot = pair % 4;
    return M::template right_signed<12>(M::template left<12 - 4 * slot>(M::line(panel.quants[pair / 4])));
  }
};

template <class M>
struct Codec<M, blocks::Q4_1> {
  using P = Panel<blocks::Q4_1>;
  static constexpr int unit = 32;
  static constexpr bool has_minimum = true;
  static auto scale(const P& panel, int) { return M::from_halves(panel.scales); }
  static auto minimum(const P& panel, int) { return M::from_halves(panel.minima); }
  template <int pair>
  static auto words(const P& panel, int) {
    return code<M, 4, pair>(panel.codes);
  }
};

template <class M>
struct Codec<M, blocks::Q5_0> {
  using P = Panel<blocks::Q5_0>;
  static constexpr int unit = 32;
  static constexpr bool has_minimum = true;
  static auto scale(const P& panel, int) { return M::from_halves(panel.scales); }
  static auto minimum(const P& panel, int u) { return M::times(scale(panel, u), M::floats(zero_point(16))); }
  template <int pair>
  static auto words(const P& panel, int) {
    return with_high<M, 1, 4, pair>(code<M, 4, pair>(panel.unit.codes), M::line(panel.unit.high[0]));
  }
};

template <class M>
struct Codec<M, blocks::Q5_1> {
  using P = Panel<blocks::Q5_1>;
  static constexpr int unit = 32;
  static constexpr bool has_minimum = true;
  static auto scale(const P& panel, int) { return M::from_halves(panel.scales); }
  static auto minimum(const P& panel, int) { return M::from_halves(panel.minima); }
  template <int pair>
  static auto words(const P& panel, int) {
    return with_high<M, 1, 4, pair>(code<M, 4, pair>(panel.unit.codes), M::line(panel.unit.high[0]));
  }
};

alignas(16) constexpr std::int8_t iq4_table[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                   1,    13,   25,  38,  53,  69,  89,  113};
alignas(16) constexpr std::int8_t e2m1_doubled[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                                      0, -1, -2, -3, -4, -6, -8, -12};

template <class M>
struct Codec<M, blocks::Iq4_NL> {
  using P = Panel<blocks::Iq4_NL>;
  static constexpr int unit = 32;
  static constexpr bool has_minimum = false;
  static auto scale(const P& panel, int) { return M::from_halves(panel.scales); }
  template <int pair>
  static auto words(const P& panel, int) {
    return M::look_up(M::table(iq4_table), shifted<M, 4, pair>(panel.codes));
  }
};

template <class M>
struct Codec<M, blocks::Mxfp4> {
  using P = Panel<blocks::Mxfp4>;
  static constexpr int unit = 32;
  static constexpr bool has_minimum = false;
  static auto scale(const P& panel, int) {
    // The exponent in place is 2^(e - 127); 0 means 2^-127, which is the subnormal 0x400000. Half of it,
    // because the table holds doubled values.
    const auto power = M::larger(M::left_by(M::bytes(panel.exponents), 23), M::ints(0x400000));
    return M::times(M::as_floats(power), M::floats(0.5f));
  }
  template <int pair>
  static auto words(const P& panel, int) {
    return M::look_up(M::table(e2m1_doubled), shifted<M, 4, pair>(panel.codes));
  }
};

// The six-bit scales and offsets of Q4_K and Q5_K: see blocks/k_scales.h.
template <class M>
typename M::Ints k_scale(const std::uint8_t (*groups)[panel_rows], int group) {
  if (group < 4) return M::masked(M::bytes(groups[group]), 63);
  return M::either(M::masked(M::bytes(groups[group + 4]), 15),
                   M::left_by(M::right_by(M::bytes(groups[group - 4]), 6), 4));
}
template <class M>
typename M::Ints k_offset(const std::uint8_t (*groups)[panel_rows], int group) {
  if (group < 4) return M::masked(M::bytes(groups[group + 4]), 63);
  return M::either(M::right_by(M::bytes(groups[group + 4]), 4),
                   M::left_by(M::right_by(M::bytes(groups[group]), 6), 4));
}

template <class M, class P>
typename M::Floats k_scales(const P& panel, int u) {
  return M::times(M::from_halves(panel.scales), M::to_floats(k_scale<M>(panel.groups, u)));
}
template <class M, class P>
typename M::Floats k_minima(const P& panel, int u) {
  const auto offset = M::times(M::from_halves(panel.minima), M::to_floats(k_offset<M>(panel.groups, u)));
  return M::minus(M::no_floats(), offset);
}

template <class M>
struct Codec<M, blocks::Q4_K> {
  using P = Panel<blocks::Q4_K>;
  static constexpr int unit = 32;
  static constexpr bool has_minimum = true;
  static auto scale(const P& panel, int u) { return k_scales<M>(panel, u); }
  static auto minimum(const P& panel, int u) { return k_minima<M>(panel, u); }
  template <int pair>
  static auto words(const P& panel, int u) {
    return code<M, 4, pair>(panel.codes[u]);
  }
};

template <class M>
struct Codec<M, blocks::Q5_K> {
  using P = Panel<blocks::Q5_K>;
  static constexpr int unit = 32;
  static constexpr bool has_minimum = true;
  static auto scale(const P& panel, int u) { return k_scales<M>(panel, u); }
  static auto minimum(const P& panel, int u) { return k_minima<M>(panel, u); }
  template <int pair>
  static auto words(const P& panel, int u) {
    return with_high<M, 1, 4, pair>(code<M, 4, pair>(panel.units[u].codes), M::line(panel.units[u].high[0]));
  }
};

template <class M>
struct Codec<M, blocks::Q6_K> {
  using P = Panel<blocks::Q6_K>;
  static constexpr int unit = 16;
  static constexpr bool has_minimum = true;
  static auto scale(const P& panel, int u) {
    return M::times(M::from_halves(panel.scales), M::to_floats(M::signed_bytes(panel.groups[u])));
  }
  static auto minimum(const P& panel, int u) { return M::times(scale(panel, u), M::floats(zero_point(32))); }
  template <int pair>
  static auto words(const P& panel, int u) {
    return with_high<M, 2, 4, pair>(code<M, 4, pair>(panel.units[u].codes), M::line(panel.units[u].high[0]));
  }
};

template <class M>
struct Codec<M, blocks::Q2_K> {
  using P = Panel<blocks::Q2_K>;
  static constexpr int unit = 16;
  static constexpr bool has_minimum = true;
  static auto scale(const P& panel, int u) {
    return M::times(M::from_halves(panel.scales), M::to_floats(M::masked(M::bytes(panel.groups[u]), 15)));
  }
  static auto minimum(const P& panel, int u) {
    const auto offset = M::to_floats(M::right_by(M::bytes(panel.groups[u]), 4));
    return M::minus(M::no_floats(), M::times(M::from_halves(panel.minima), offset));
  }
  template <int pair>
  static auto words(const P& panel, int u) {
    return code<M, 2, pair>(panel.codes + u);
  }
};

template <class M>
struct Codec<M, blocks::Q3_K> {
  using P = Panel<blocks::Q3_K>;
  static constexpr int unit = 16;
  static constexpr bool has_minimum = true;
  static auto scale(const P& panel, int u) {
    const auto low = M::masked(M::right_by(M::bytes(panel.groups[u % 8]), u / 8 * 4), 15);
    const auto top = M::masked(M::right_by(M::bytes(panel.groups[8 + u % 4]), u / 4 * 2), 3);
    const auto group = M::add(M::either(low, M::left_by(top, 4)), M::ints(-32));
    return M::times(M::from_halves(panel.scales), M::to_floats(group));
  }
  static auto minimum(const P& panel, int u) { return M::times(scale(panel, u), M::floats(zero_point(4))); }
  template <int pair>
  static auto words(const P& panel, int u) {
    // Two units share a line of third bits: the second one's are in the upper half of each lane.
    const auto high = M::words_right_by(M::line(panel.units[u / 2].high[0]), u % 2 * 8);
    return with_high<M, 1, 2, pair>(code<M, 2, pair>(panel.units[u / 2].codes + u % 2), high);
  }
};

template <class M>
struct Codec<M, blocks::Tq2_0> {
  using P = Panel<blocks::Tq2_0>;
  static constexpr int unit = 32;
  static constexpr bool has_minimum = true;
  static auto scale(const P& panel, int) { return M::from_halves(panel.scales); }
  static auto minimum(const P& panel, int u) { return M::times(scale(panel, u), M::floats(zero_point(1))); }
  template <int pair>
  static auto words(const P& panel, int u) {
    return code<M, 2, pair>(panel.codes[u]);
  }
};

template <class M>
struct Codec<M, blocks::Iq4_XS> {
  using P = Panel<blocks::Iq4_XS>;
  static constexpr int unit = 32;
  static constexpr bool has_minimum = false;
  static auto scale(const P& panel, int u) {
    const auto low = M::masked(M::right_by(M::bytes(panel.group_low[u / 2]), u % 2 * 4), 15);
    const auto top = M::masked(M::right_by(M::halves(panel.group_high), 2 * u), 3);
    const auto group = M::add(M::either(low, M::left_by(top, 4)), M::ints(-32));
    return M::times(M::from_halves(panel.scales), M::to_floats(group));
  }
  template <int pair>
  static auto words(const P& panel, int u) {
    return M::look_up(M::table(iq4_table), shifted<M, 4, pair>(panel.codes[u]));
  }
};

}  // namespace
}  // namespace inferno::cpu
