// Quantized panels as whole numbers. A codec walks over units (columns under one scale), opens them in steps
// and hands out each pair of columns as 32 int16; the unit's values are scale * number + minimum.
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

// Lines are read one step at a time: one load serves `pairs` steps.
template <class M, int bits>
struct CodeStep {
  static constexpr int pairs = pairs_in_line<bits>;
  typename M::Words line;
  // The upper bits of the lanes are not zero.
  template <int pair>
  typename M::Words shifted() const {
    return M::template right<pair * bits>(line);
  }
  template <int pair>
  typename M::Words words() const {
    if constexpr (pair == pairs - 1) return shifted<pair>();
    return M::both(shifted<pair>(), M::words((1 << bits) - 1));
  }
  // The code times 2^weight, for one instruction less.
  template <int pair>
  static constexpr int weight = pair == pairs - 1 ? 0 : pair * bits;
  template <int pair>
  typename M::Words words_in_place() const {
    if constexpr (pair == pairs - 1) return shifted<pair>();
    return M::both(line, M::words(((1 << bits) - 1) << (pair * bits)));
  }
};

// Codes whose upper bits are in a line of their own, shared by several steps.
template <class M, int bits, int high_bits, int step>
struct SplitStep {
  static constexpr int pairs = pairs_in_line<bits>;
  CodeStep<M, bits> low;
  typename M::Words high;
  template <int pair>
  typename M::Words words() const {
    constexpr int at = (step * pairs + pair) * high_bits;
    const typename M::Words mask = M::words(((1 << high_bits) - 1) << bits);
    const typename M::Words code = low.template words<pair>();
    if constexpr (at > bits) return M::merge(code, M::template right<at - bits>(high), mask);
    return M::merge(code, M::template left<bits - at>(high), mask);
  }
};

template <class M>
struct TableStep {
  static constexpr int pairs = 4;
  CodeStep<M, 4> index;
  typename M::Table table;
  template <int pair>
  typename M::Words words() const {
    return M::look_up(table, index.template shifted<pair>());
  }
};

template <class M>
struct ByteStep {
  static constexpr int pairs = 2;
  typename M::Words bytes;  // each 128 too large
  template <int pair>
  typename M::Words words() const {
    const typename M::Words wide = pair == 0 ? M::both(bytes, M::words(0xFF)) : M::template right<8>(bytes);
    return M::less(wide, M::words(128));
  }
};

// Scales and minima of the formats with blocks of 32.
template <class M, class P>
struct HalfScales {
  static constexpr int unit = 32;
  static auto scale(const P& panel, int) { return M::from_halves(panel.scales); }
};

template <class M>
struct Codec<M, blocks::Q8_0> : HalfScales<M, Panel<blocks::Q8_0>> {
  using P = Panel<blocks::Q8_0>;
  static constexpr bool has_minimum = false;
  template <int step>
  static ByteStep<M> open(const P& panel, int) {
    return {M::line(panel.quads[step])};
  }
};

template <class M>
struct Codec<M, blocks::Q4_0> : HalfScales<M, Panel<blocks::Q4_0>> {
  using P = Panel<blocks::Q4_0>;
  static constexpr bool has_minimum = true;
  static auto minimum(const P& panel, int u) {
    return M::times(Codec::scale(panel, u), M::floats(zero_point(8)));
  }
  template <int step>
  static CodeStep<M, 4> open(const P& panel, int) {
    return {M::line(panel.codes[step])};
  }
};

template <class M>
struct Codec<M, blocks::Q4_1> : HalfScales<M, Panel<blocks::Q4_1>> {
  using P = Panel<blocks::Q4_1>;
  static constexpr bool has_minimum = true;
  static auto minimum(const P& panel, int) { return M::from_halves(panel.minima); }
  template <int step>
  static CodeStep<M, 4> open(const P& panel, int) {
    return {M::line(panel.codes[step])};
  }
};

template <class M>
struct Codec<M, blocks::Q5_0> : HalfScales<M, Panel<blocks::Q5_0>> {
  using P = Panel<blocks::Q5_0>;
  static constexpr bool has_minimum = true;
  static auto minimum(const P& panel, int u) {
    return M::times(Codec::scale(panel, u), M::floats(zero_point(16)));
  }
  template <int step>
  static SplitStep<M, 4, 1, step> open(const P& panel, int) {
    return {{M::line(panel.unit.codes[step])}, M::line(panel.unit.high[0])};
  }
};

template <class M>
struct Codec<M, blocks::Q5_1> : HalfScales<M, Panel<blocks::Q5_1>> {
  using P = Panel<blocks::Q5_1>;
  static constexpr bool has_minimum = true;
  static auto minimum(const P& panel, int) { return M::from_halves(panel.minima); }
  template <int step>
  static SplitStep<M, 4, 1, step> open(const P& panel, int) {
    return {{M::line(panel.unit.codes[step])}, M::line(panel.unit.high[0])};
  }
};

alignas(16) constexpr std::int8_t iq4_table[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                   1,    13,   25,  38,  53,  69,  89,  113};
alignas(16) constexpr std::int8_t e2m1_doubled[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                                      0, -1, -2, -3, -4, -6, -8, -12};

template <class M>
struct Codec<M, blocks::Iq4_NL> : HalfScales<M, Panel<blocks::Iq4_NL>> {
  using P = Panel<blocks::Iq4_NL>;
  static constexpr bool has_minimum = false;
  template <int step>
  static TableStep<M> open(const P& panel, int) {
    return {{M::line(panel.codes[step])}, M::table(iq4_table)};
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
  template <int step>
  static TableStep<M> open(const P& panel, int) {
    return {{M::line(panel.codes[step])}, M::table(e2m1_doubled)};
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
  template <int step>
  static CodeStep<M, 4> open(const P& panel, int u) {
    return {M::line(panel.codes[u][step])};
  }
};

template <class M>
struct Codec<M, blocks::Q5_K> {
  using P = Panel<blocks::Q5_K>;
  static constexpr int unit = 32;
  static constexpr bool has_minimum = true;
  static auto scale(const P& panel, int u) { return k_scales<M>(panel, u); }
  static auto minimum(const P& panel, int u) { return k_minima<M>(panel, u); }
  template <int step>
  static SplitStep<M, 4, 1, step> open(const P& panel, int u) {
    return {{M::line(panel.units[u].codes[step])}, M::line(panel.units[u].high[0])};
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
  template <int step>
  static SplitStep<M, 4, 2, step> open(const P& panel, int u) {
    return {{M::line(panel.units[u].codes[step])}, M::line(panel.units[u].high[0])};
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
  template <int step>
  static CodeStep<M, 2> open(const P& panel, int u) {
    return {M::line(panel.codes[u])};
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
  template <int step>
  static SplitStep<M, 2, 1, step> open(const P& panel, int u) {
    // Two units share a line of third bits: the second one's are in the upper half of each lane.
    const auto& lines = panel.units[u / 2];
    return {{M::line(lines.codes[u % 2])}, M::words_right_by(M::line(lines.high[0]), u % 2 * 8)};
  }
};

template <class M>
struct Codec<M, blocks::Tq2_0> {
  using P = Panel<blocks::Tq2_0>;
  static constexpr int unit = 32;
  static constexpr bool has_minimum = true;
  static auto scale(const P& panel, int) { return M::from_halves(panel.scales); }
  static auto minimum(const P& panel, int u) { return M::times(scale(panel, u), M::floats(zero_point(1))); }
  template <int step>
  static CodeStep<M, 2> open(const P& panel, int u) {
    return {M::line(panel.codes[u][step])};
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
  template <int step>
  static TableStep<M> open(const P& panel, int u) {
    return {{M::line(panel.codes[u][step])}, M::table(iq4_table)};
  }
};

// The blocks of tensor/blocks/scaled.h.
template <class M, int count>
struct Codec<M, blocks::Int4<count>> {
  using P = Panel<blocks::Int4<count>>;
  static constexpr int unit = 32;
  static constexpr bool has_minimum = true;
  static auto scale(const P& panel, int) { return M::load(panel.scales); }
  static auto minimum(const P& panel, int u) {
    const auto zero = M::minus(M::no_floats(), M::to_floats(M::bytes(panel.zeros)));
    return M::times(scale(panel, u), zero);
  }
  template <int step>
  static CodeStep<M, 4> open(const P& panel, int u) {
    return {M::line(panel.codes[u][step])};
  }
};

template <class M, int count>
struct Codec<M, blocks::Int8<count>> {
  using P = Panel<blocks::Int8<count>>;
  static constexpr int unit = 32;
  static constexpr bool has_minimum = true;
  static auto scale(const P& panel, int) { return M::load(panel.scales); }
  static auto minimum(const P& panel, int u) {
    // ByteStep subtracts 128, the zero point of symmetric weights, which then have no minimum.
    const auto zero = M::minus(M::floats(128.0f), M::to_floats(M::bytes(panel.zeros)));
    return M::times(scale(panel, u), zero);
  }
  template <int step>
  static ByteStep<M> open(const P& panel, int u) {
    return {M::line(panel.quads[u * (unit / 4) + step])};
  }
};

template <class M, int count>
struct Codec<M, blocks::Nvfp4<count>> {
  using P = Panel<blocks::Nvfp4<count>>;
  static constexpr int unit = 16;
  static constexpr bool has_minimum = false;
  static auto scale(const P& panel, int u) {
    // 128, because from_e4m3() gives 2^-8 of the value and the table holds doubled ones.
    const auto group = M::times(M::from_e4m3(panel.scales[u]), M::floats(128.0f));
    return M::times(M::load(panel.factors), group);
  }
  template <int step>
  static TableStep<M> open(const P& panel, int u) {
    return {{M::line(panel.codes[u][step])}, M::table(e2m1_doubled)};
  }
};

}  // namespace
}  // namespace inferno::cpu
