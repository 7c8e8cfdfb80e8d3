// Stored blocks to panels: the same bits, 16 rows side by side.
#include <algorithm>
#include <cstring>

#include "backend/cpu/panels.h"

namespace inferno::cpu {
namespace {

using namespace blocks;

// The whole number of element i before scale and zero point.
int nibble(const std::uint8_t* nibbles, int i) {
  return i < 16 ? nibbles[i] & 0xF : nibbles[i - 16] >> 4;
}
int code_of(const Q4_0& block, int i) {
  return nibble(block.nibbles, i);
}
int code_of(const Q4_1& block, int i) {
  return nibble(block.nibbles, i);
}
int code_of(const Iq4_NL& block, int i) {
  return nibble(block.nibbles, i);
}
int code_of(const Mxfp4& block, int i) {
  return nibble(block.nibbles, i);
}
int code_of(const Q5_0& block, int i) {
  return nibble(block.nibbles, i) | ((block.high[i / 8] >> (i % 8)) & 1) << 4;
}
int code_of(const Q5_1& block, int i) {
  return nibble(block.nibbles, i) | ((block.high[i / 8] >> (i % 8)) & 1) << 4;
}
int code_of(const Q4_K& block, int i) {
  return (block.nibbles[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4)) & 15;
}
int code_of(const Q5_K& block, int i) {
  const int low = (block.nibbles[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4)) & 15;
  return low | ((block.high[i % 32] >> (i / 32)) & 1) << 4;
}
int code_of(const Q6_K& block, int i) {
  const int low = (block.low[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4)) & 15;
  return low | ((block.high[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3) << 4;
}
int code_of(const Q2_K& block, int i) {
  return (block.quants[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3;
}
int code_of(const Q3_K& block, int i) {
  const int low = (block.quants[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3;
  return low | ((block.high[i % 32] >> (i / 32)) & 1) << 2;
}
int code_of(const Tq2_0& block, int i) {
  return (block.quants[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3;
}
int code_of(const Iq4_XS& block, int i) {
  return nibble(block.nibbles + i / 32 * 16, i % 32);
}

template <int count>
int code_of(const Int4<count>& block, int i) {
  return nibble_in_groups(block.nibbles, i);
}
template <int count>
int code_of(const Nvfp4<count>& block, int i) {
  return nibble_in_groups(block.nibbles, i);
}

// Bits [from, from + bits) of all codes of row r, into lines as panels.h describes.
template <int bits, int elements>
void put_codes(Line* lines, const std::uint8_t (&codes)[elements], int r, int from = 0) {
  constexpr int slots = pairs_in_line<bits>;
  for (int line = 0; line < elements / 2 / slots; ++line) {
    for (int odd = 0; odd < 2; ++odd) {
      unsigned lane = 0;
      for (int slot = 0; slot < slots; ++slot) {
        const unsigned code = codes[(line * slots + slot) * 2 + odd];
        lane |= ((code >> from) & ((1u << bits) - 1u)) << (slot * bits);
      }
      lines[line][2 * r + odd] = static_cast<std::uint16_t>(lane);
    }
  }
}

// The same for codes in several units, upper bits [from, ...) apart.
template <int low_bits, int high_bits, int high_lines, int low_lines, int elements>
void put_codes(Lines<high_lines, low_lines>* units, const std::uint8_t (&codes)[elements], int r) {
  constexpr int in_unit = 2 * low_lines * pairs_in_line<low_bits>;
  static_assert(in_unit == 2 * high_lines * pairs_in_line<high_bits>);
  for (int u = 0; u < elements / in_unit; ++u) {
    std::uint8_t of_unit[in_unit];
    std::copy_n(codes + u * in_unit, in_unit, of_unit);
    put_codes<low_bits>(units[u].codes, of_unit, r);
    put_codes<high_bits>(units[u].high, of_unit, r, low_bits);
  }
}

template <int count>
void put_groups(std::uint8_t (*to)[panel_rows], const std::uint8_t (&from)[count], int r) {
  for (int g = 0; g < count; ++g) to[g][r] = from[g];
}

// The rest of a block: row r's scales and the planes its codes are split into.
using Codes32 = std::uint8_t[32];
using Codes256 = std::uint8_t[256];
void put(Panel<Q4_0>& to, const Q4_0& from, const Codes32& codes, int r) {
  to.scales[r] = from.scale;
  put_codes<4>(to.codes, codes, r);
}
void put(Panel<Q4_1>& to, const Q4_1& from, const Codes32& codes, int r) {
  to.scales[r] = from.scale;
  to.minima[r] = from.minimum;
  put_codes<4>(to.codes, codes, r);
}
void put(Panel<Q5_0>& to, const Q5_0& from, const Codes32& codes, int r) {
  to.scales[r] = from.scale;
  put_codes<4, 1>(&to.unit, codes, r);
}
void put(Panel<Q5_1>& to, const Q5_1& from, const Codes32& codes, int r) {
  to.scales[r] = from.scale;
  to.minima[r] = from.minimum;
  put_codes<4, 1>(&to.unit, codes, r);
}
void put(Panel<Iq4_NL>& to, const Iq4_NL& from, const Codes32& codes, int r) {
  to.scales[r] = from.scale;
  put_codes<4>(to.codes, codes, r);
}
void put(Panel<Mxfp4>& to, const Mxfp4& from, const Codes32& codes, int r) {
  to.exponents[r] = from.exponent;
  put_codes<4>(to.codes, codes, r);
}
void put(Panel<Q4_K>& to, const Q4_K& from, const Codes256& codes, int r) {
  to.scales[r] = from.scale;
  to.minima[r] = from.minimum;
  put_groups(to.groups, from.groups.bytes, r);
  put_codes<4>(to.codes[0], codes, r);
}
void put(Panel<Q5_K>& to, const Q5_K& from, const Codes256& codes, int r) {
  to.scales[r] = from.scale;
  to.minima[r] = from.minimum;
  put_groups(to.groups, from.groups.bytes, r);
  put_codes<4, 1>(to.units, codes, r);
}
void put(Panel<Q6_K>& to, const Q6_K& from, const Codes256& codes, int r) {
  to.scales[r] = from.scale;
  for (int g = 0; g < 16; ++g) to.groups[g][r] = from.groups[g];
  put_codes<4, 2>(to.units, codes, r);
}
void put(Panel<Q2_K>& to, const Q2_K& from, const Codes256& codes, int r) {
  to.scales[r] = from.scale;
  to.minima[r] = from.minimum;
  put_groups(to.groups, from.groups, r);
  put_codes<2>(to.codes, codes, r);
}
void put(Panel<Q3_K>& to, const Q3_K& from, const Codes256& codes, int r) {
  to.scales[r] = from.scale;
  put_groups(to.groups, from.groups, r);
  put_codes<2, 1>(to.units, codes, r);
}
void put(Panel<Tq2_0>& to, const Tq2_0& from, const Codes256& codes, int r) {
  to.scales[r] = from.scale;
  put_codes<2>(to.codes[0], codes, r);
}
void put(Panel<Iq4_XS>& to, const Iq4_XS& from, const Codes256& codes, int r) {
  to.scales[r] = from.scale;
  to.group_high[r] = from.group_high;
  put_groups(to.group_low, from.group_low, r);
  put_codes<4>(to.codes[0], codes, r);
}

template <int count>
void put(Panel<Int4<count>>& to, const Int4<count>& from, const std::uint8_t (&codes)[count], int r) {
  to.scales[r] = from.scale.value();
  to.zeros[r] = from.zero;
  put_codes<4>(to.codes[0], codes, r);
}
template <int count>
void put(Panel<Nvfp4<count>>& to, const Nvfp4<count>& from, const std::uint8_t (&codes)[count], int r) {
  to.factors[r] = from.factor.value();
  put_groups(to.scales, from.scales, r);
  put_codes<4>(to.codes[0], codes, r);
}

// Four columns of bytes, in the order that panels.h describes.
template <int count>
void put_quads(std::uint8_t (*quads)[4 * panel_rows], const std::uint8_t (&codes)[count], int r) {
  constexpr int place[] = {0, 2, 1, 3};
  for (int i = 0; i < count; ++i) quads[i / 4][4 * r + place[i % 4]] = codes[i];
}

// Row r of column block b.
template <class B>
void put_block(Panel<B>* panel, const B& block, int b, int r) {
  std::uint8_t codes[B::elements];
  for (int i = 0; i < B::elements; ++i) codes[i] = static_cast<std::uint8_t>(code_of(block, i));
  put(panel[b], block, codes, r);
}
void put_block(Panel<Q8_0>* panel, const Q8_0& block, int b, int r) {
  panel[b].scales[r] = block.scale;
  Codes32 codes;
  for (int i = 0; i < 32; ++i) codes[i] = static_cast<std::uint8_t>(block.quants[i] + 128);
  put_quads(panel[b].quads, codes, r);
}
template <int count>
  requires(count >= 32)
void put_block(Panel<Int8<count>>* panel, const Int8<count>& block, int b, int r) {
  panel[b].scales[r] = block.scale.value();
  panel[b].zeros[r] = block.zero;
  put_quads(panel[b].quads, block.codes, r);
}
template <int count>
void put_block(Panel<Fp8<count>>* panel, const Fp8<count>& block, int b, int r) {
  panel[b].scales[r] = block.scale.value();
  for (int i = 0; i < count; ++i) panel[b].codes[i][r] = block.codes[i];
}
void put_block(Panel<F32>* panel, const F32& block, int b, int r) {
  panel[b].values[r] = block.value;
}
void put_block(Panel<F16>* panel, const F16& block, int b, int r) {
  panel[b].values[r] = block.bits;
}
void put_block(Panel<Bf16>* panel, const Bf16& block, int b, int r) {
  panel[b / 2].values[2 * r + b % 2] = block.bits;
}

}  // namespace

PanelShape panel_shape(WeightFormat format, std::int32_t rows, std::int32_t cols) {
  return visit(format, [rows, cols]<Block B>(B) -> PanelShape {
    if constexpr (HasPanel<B>) {
      return {.block_columns = panel_columns<B>,
              .block_bytes = sizeof(Panel<B>),
              .blocks = (cols + panel_columns<B> - 1) / panel_columns<B>,
              .panels = (rows + panel_rows - 1) / panel_rows};
    }
    return {};
  });
}

bool has_integers(WeightFormat format) {
  return visit(format, []<Block B>(B) { return HasIntegers<B>; });
}

void pack_panel(WeightFormat format, std::byte* to, const std::byte* matrix, std::int32_t rows,
                std::int32_t cols, std::int32_t panel) {
  visit(format, [=]<Block B>(B block) {
    if constexpr (HasPanel<B>) {
      static_assert(sizeof(Panel<B>) == panel_rows * sizeof(B) * panel_columns<B> / B::elements);
      const int blocks = cols / B::elements;
      const int first = panel * panel_rows;
      for (int r = 0; r < std::min(panel_rows, rows - first); ++r) {
        const std::byte* row =
            matrix + static_cast<std::size_t>(first + r) * static_cast<std::size_t>(blocks) * sizeof(B);
        for (int b = 0; b < blocks; ++b) {
          std::memcpy(&block, row + static_cast<std::size_t>(b) * sizeof(B), sizeof(B));
          put_block(reinterpret_cast<Panel<B>*>(to), block, b, r);
        }
      }
    }
  });
}

}  // namespace inferno::cpu
