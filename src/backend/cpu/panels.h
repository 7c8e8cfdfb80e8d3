// The layout of weights for the vector kernels: 16 rows side by side, block after block, in exactly the
// bytes of the stored format. A vector then holds one pair of columns of all 16 rows, so that a product
// needs no sums across a vector, and the 16 scales of a block are one load.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/format.h"

namespace inferno::cpu {

inline constexpr int panel_rows = 16;

// Codes of `bits` bits in 16-bit lanes, lane 2 * r + c % 2 for row r and column c. A line of 32 lanes holds
// 16 / bits pairs of columns, the first in the lowest bits: a shift and a mask give 32 whole numbers, in
// the order that multiply-add-pairs instructions want.
using Line = std::uint16_t[2 * panel_rows];
template <int bits>
inline constexpr int pairs_in_line = 16 / bits;

// Codes split into their upper bits and the rest, unit by unit: memory is then read strictly in order, which
// doubles the speed at which it arrives.
template <int high_lines, int low_lines>
struct Lines {
  Line high[high_lines], codes[low_lines];
};

// One block of 16 rows. Formats without one are kept as stored and decoded while multiplying.
template <class B>
struct Panel {};

template <>
struct Panel<blocks::F32> {
  float values[panel_rows];
};
template <>
struct Panel<blocks::F16> {
  std::uint16_t values[panel_rows];
};
// Two columns, because a 32-bit lane holds two values. An odd last column is followed by zeros.
template <>
struct Panel<blocks::Bf16> {
  Line values;
};
template <>
struct Panel<blocks::Q8_0> {
  std::uint16_t scales[panel_rows];
  // Numbers + 128, four columns in a 32-bit lane in the order 0 2 1 3: the lower bytes of the 16-bit lanes
  // are one pair of columns, the upper bytes the next, and all together are what byte products want.
  std::uint8_t quads[8][4 * panel_rows];
};
template <>
struct Panel<blocks::Q4_0> {
  std::uint16_t scales[panel_rows];
  Line codes[4];
};
template <>
struct Panel<blocks::Q4_1> {
  std::uint16_t scales[panel_rows], minima[panel_rows];
  Line codes[4];
};
template <>
struct Panel<blocks::Q5_0> {
  std::uint16_t scales[panel_rows];
  Lines<1, 4> unit;
};
template <>
struct Panel<blocks::Q5_1> {
  std::uint16_t scales[panel_rows], minima[panel_rows];
  Lines<1, 4> unit;
};
template <>
struct Panel<blocks::Iq4_NL> {
  std::uint16_t scales[panel_rows];
  Line codes[4];
};
template <>
struct Panel<blocks::Mxfp4> {
  std::uint8_t exponents[panel_rows];
  Line codes[4];
};
template <>
struct Panel<blocks::Q4_K> {
  std::uint16_t scales[panel_rows], minima[panel_rows];
  std::uint8_t groups[12][panel_rows];  // KScales::bytes
  Line codes[8][4];
};
template <>
struct Panel<blocks::Q5_K> {
  std::uint16_t scales[panel_rows], minima[panel_rows];
  std::uint8_t groups[12][panel_rows];
  Lines<1, 4> units[8];
};
template <>
struct Panel<blocks::Q6_K> {
  std::uint16_t scales[panel_rows];
  std::int8_t groups[16][panel_rows];
  Lines<1, 2> units[16];
};
template <>
struct Panel<blocks::Q2_K> {
  std::uint16_t scales[panel_rows], minima[panel_rows];
  std::uint8_t groups[16][panel_rows];
  Line codes[16];
};
template <>
struct Panel<blocks::Q3_K> {
  std::uint16_t scales[panel_rows];
  std::uint8_t groups[12][panel_rows];
  Lines<1, 2> units[8];  // of two groups each
};
template <>
struct Panel<blocks::Tq2_0> {
  std::uint16_t scales[panel_rows];
  Line codes[8][2];
};
template <>
struct Panel<blocks::Iq4_XS> {
  std::uint16_t scales[panel_rows], group_high[panel_rows];
  std::uint8_t group_low[4][panel_rows];
  Line codes[8][4];
};

template <int count>
struct Panel<blocks::Int4<count>> {
  float scales[panel_rows];
  std::uint8_t zeros[panel_rows];
  Line codes[count / 32][4];
};
template <int count>
  requires(count >= 32)  // integer kernels multiply 32 activations under one scale
struct Panel<blocks::Int8<count>> {
  float scales[panel_rows];
  std::uint8_t zeros[panel_rows];
  std::uint8_t quads[count / 4][4 * panel_rows];  // as in Q8_0's
};
template <int count>
struct Panel<blocks::Fp8<count>> {
  float scales[panel_rows];
  std::uint8_t codes[count][panel_rows];
};
template <int count>
struct Panel<blocks::Nvfp4<count>> {
  float factors[panel_rows];
  std::uint8_t scales[count / 16][panel_rows];
  Line codes[count / 16][2];
};

template <class B>
concept HasPanel = sizeof(Panel<B>) > 1;

// Columns of one Panel<B>.
template <HasPanel B>
inline constexpr int panel_columns = B::elements;
template <>
inline constexpr int panel_columns<blocks::Bf16> = 2;

// The kernels multiply whole numbers (a row's activations become 16-bit numbers), floats, or narrow floats
// under a scale for each block.
template <class B>
concept HasScaledFloats = HasPanel<B> && requires(Panel<B> panel) {
  panel.scales;
  panel.codes[B::elements - 1][panel_rows - 1];
  requires sizeof(panel.codes) == B::elements* panel_rows;
};
template <class B>
concept HasIntegers = HasPanel<B> && B::elements > 1 && !HasScaledFloats<B>;

// Offsets of the matrices and panels of a weight. `block_bytes` is 0 for formats that stay as stored.
struct PanelShape {
  int block_columns = 0;
  std::size_t block_bytes = 0;  // of one Panel
  int blocks = 0;               // along a row
  int panels = 0;               // of one matrix; the last may have rows that are zero
  std::size_t panel_bytes() const { return static_cast<std::size_t>(blocks) * block_bytes; }
  std::size_t matrix_bytes() const { return static_cast<std::size_t>(panels) * panel_bytes(); }
};
PanelShape panel_shape(WeightFormat format, std::int32_t rows, std::int32_t cols);
bool has_integers(WeightFormat format);

// Rearranges rows [16 * panel, ...) of one stored matrix. `to` is zeroed and has panel_bytes().
void pack_panel(WeightFormat format, std::byte* to, const std::byte* matrix, std::int32_t rows,
                std::int32_t cols, std::int32_t panel);

}  // namespace inferno::cpu
