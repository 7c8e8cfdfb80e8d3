// Quantized blocks are filled with random bits, then arranged: their scales are set, and the few bits that
// would make the values lopsided are corrected. Plain numbers are drawn from a small table.
#include "tensor/random_weight.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "tensor/float16.h"

namespace inferno {
namespace {

// Word number `index` of the stream of `seed`: Steele, Lea and Flood's SplitMix64.
std::uint64_t random_word(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

void fill_bits(std::span<std::byte> bytes, std::uint64_t seed, std::uint64_t first_word) {
  std::size_t at = 0;
  std::uint64_t index = first_word;
  for (; at + 8 <= bytes.size(); at += 8) {
    const std::uint64_t word = random_word(seed, index++);
    std::memcpy(bytes.data() + at, &word, 8);
  }
  const std::uint64_t word = random_word(seed, index);
  std::memcpy(bytes.data() + at, &word, bytes.size() - at);
}

// Keeps the random sign that the field holds: codes that lean to one side lean to either as often.
void set_with_random_sign(std::uint16_t& field, float scale) {
  field = static_cast<std::uint16_t>((field & 0x8000u) | float_to_f16(scale));
}

// Each arrange() finds a block of random bits and leaves one whose deviation is proportional to `scale`.
void arrange(blocks::Q8_0& block, float scale) {
  set_with_random_sign(block.scale, scale);
}
void arrange(blocks::Q4_0& block, float scale) {
  set_with_random_sign(block.scale, scale);
}
void arrange(blocks::Q5_0& block, float scale) {
  set_with_random_sign(block.scale, scale);
}
void arrange(blocks::Iq4_NL& block, float scale) {
  set_with_random_sign(block.scale, scale);
}
void arrange(blocks::Q3_K& block, float scale) {
  set_with_random_sign(block.scale, scale);
}
void arrange(blocks::Q6_K& block, float scale) {
  set_with_random_sign(block.scale, scale);
}
void arrange(blocks::Iq3_S& block, float scale) {
  set_with_random_sign(block.scale, scale);
}
void arrange(blocks::Iq4_XS& block, float scale) {
  set_with_random_sign(block.scale, scale);
}

void arrange(blocks::Q4_1& block, float scale) {
  block.scale = float_to_f16(scale);
  block.minimum = float_to_f16(-7.5f * scale);
}

void arrange(blocks::Q5_1& block, float scale) {
  block.scale = float_to_f16(scale);
  block.minimum = float_to_f16(-15.5f * scale);
}

void arrange(blocks::Q2_K& block, float scale) {
  block.scale = float_to_f16(scale);
  block.minimum = float_to_f16(1.5f * scale);
  for (std::uint8_t& group : block.groups) {
    const int strength = (group & 0xF) | 8;
    group = static_cast<std::uint8_t>(strength * 0x11);  // the offset equals the scale
  }
}

// Eight random scales of 32 to 63, and offsets equal to them.
void arrange(blocks::KScales& groups) {
  for (std::size_t i = 0; i < 4; ++i) {
    groups.bytes[i] |= 0xA0;
    groups.bytes[i + 4] = groups.bytes[i];
    groups.bytes[i + 8] = static_cast<std::uint8_t>((groups.bytes[i + 8] & 0xF) * 0x11);
  }
}

void arrange(blocks::Q4_K& block, float scale) {
  block.scale = float_to_f16(scale);
  block.minimum = float_to_f16(7.5f * scale);
  arrange(block.groups);
}

void arrange(blocks::Q5_K& block, float scale) {
  block.scale = float_to_f16(scale);
  block.minimum = float_to_f16(15.5f * scale);
  arrange(block.groups);
}

void arrange(blocks::Tq2_0& block, float scale) {
  block.scale = float_to_f16(scale);
  for (std::uint8_t& codes : block.quants) {
    const int threes = codes & (codes >> 1) & 0x55;
    codes =
        static_cast<std::uint8_t>(codes & ~(threes << 1));  // 3 is no ternary digit: make it the middle one
  }
}

// The scale is a power of two, so the deviation comes from mixing two neighbouring ones: with a share p of
// the larger, scale^2 = power^2 (1 - p + 4 p).
void arrange(blocks::Mxfp4& block, float scale) {
  const int power = std::ilogb(scale);
  const float above = std::ldexp(scale, -power);
  const float share = (above * above - 1.0f) / 3.0f;
  const bool larger = static_cast<float>(block.exponent) < share * 256.0f;
  block.exponent = static_cast<std::uint8_t>(std::clamp(127 + power + (larger ? 1 : 0), 1, 250));
}

template <int count>
void arrange(blocks::Int4<count>& block, float scale) {
  block.scale = blocks::PackedFloat::of(scale);
  block.zero = static_cast<std::uint8_t>(7 + block.zero % 2);  // 7.5 on average: the middle of the codes
}
template <int count>
void arrange(blocks::Int8<count>& block, float scale) {
  block.scale = blocks::PackedFloat::of(scale);
  block.zero = static_cast<std::uint8_t>(127 + block.zero % 2);
}
template <int count>
void arrange(blocks::Fp8<count>& block, float scale) {
  block.scale = blocks::PackedFloat::of(scale);
  for (std::uint8_t& code : block.codes) code &= 0xBF;  // below 2: neither NaN nor a rare giant
}
template <int count>
void arrange(blocks::Nvfp4<count>& block, float scale) {
  block.factor = blocks::PackedFloat::of(scale);
  for (std::uint8_t& code : block.scales) code = static_cast<std::uint8_t>(0x38 | (code & 7));  // 1 to 1.875
}
template <int count, const std::array<float, 16>& table>
void arrange(blocks::Table4<count, table>& block, float scale) {
  const bool negative = block.scale.bytes[0] % 2 != 0;  // NF4's table is not symmetric
  block.scale = blocks::PackedFloat::of(negative ? -scale : scale);
}

template <class B>
concept Arranged = Block<B> && requires(B block) { arrange(block, 1.0f); };

template <Arranged B>
void fill_arranged(std::span<std::byte> out, float scale, std::uint64_t seed, std::uint64_t first_block) {
  std::array<B, random_chunk> blocks;  // in the first-level cache between filling, arranging and copying
  constexpr std::size_t batch = sizeof(blocks);
  for (std::size_t at = 0; at < out.size(); at += batch) {
    const std::uint64_t chunk = first_block / random_chunk + at / batch;
    fill_bits(std::as_writable_bytes(std::span(blocks)), seed, chunk * (batch / 8 + 1));
    for (B& block : blocks) arrange(block, scale);
    std::memcpy(out.data() + at, blocks.data(), std::min(batch, out.size() - at));
  }
}

// The deviation that arrange(block, 1) gives: measured once, so that no constant has to be derived by hand.
template <Arranged B>
float unit_deviation() {
  std::vector<B> blocks(512);
  fill_arranged<B>(std::as_writable_bytes(std::span(blocks)), 1.0f, /*seed=*/0, /*first_block=*/0);
  double squares = 0.0;
  for (const B& block : blocks) {
    for (int i = 0; i < B::elements; ++i)
      squares += static_cast<double>(block[i]) * static_cast<double>(block[i]);
  }
  return static_cast<float>(std::sqrt(squares / static_cast<double>(blocks.size()) / B::elements));
}

template <Arranged B>
void fill(B, std::span<std::byte> out, float deviation, std::uint64_t seed, std::uint64_t first_block) {
  static const float unit = unit_deviation<B>();
  fill_arranged<B>(out, deviation / unit, seed, first_block);
}

template <class Number>
blocks::Plain<Number> encode(float value, blocks::Plain<Number>) {
  if constexpr (std::is_floating_point_v<Number>) {
    return {static_cast<Number>(value)};
  } else {
    const float magnitude = std::is_unsigned_v<Number> ? std::abs(value) : value;
    // The largest floats that every one of these types can hold exactly are powers of two below its limit.
    const float limit = std::ldexp(1.0f, std::numeric_limits<Number>::digits - 1);
    return {static_cast<Number>(std::lround(std::clamp(magnitude, -limit, limit)))};
  }
}

blocks::F16 encode(float value, blocks::F16) {
  return {float_to_f16(value)};
}
blocks::Bf16 encode(float value, blocks::Bf16) {
  return {float_to_bf16(value)};
}

// The nearest of the 127 non-negative codes up to `largest`, which rise with their value, and the sign.
template <Block B>
B nearest_code(float value, std::uint8_t largest) {
  std::uint8_t code = 0;
  while (code < largest) {
    const B here{code};
    const B next{static_cast<std::uint8_t>(code + 1)};
    if (std::abs(value) < 0.5f * (here[0] + next[0])) break;
    ++code;
  }
  return {static_cast<std::uint8_t>(value < 0.0f ? code | 0x80 : code)};
}

blocks::F8_E4M3 encode(float value, blocks::F8_E4M3) {
  return nearest_code<blocks::F8_E4M3>(value, 0x7E);
}
blocks::F8_E5M2 encode(float value, blocks::F8_E5M2) {
  return nearest_code<blocks::F8_E5M2>(value, 0x7B);
}

// Evenly spread values around zero, drawn four to a random word.
template <Block B>
  requires(B::elements == 1)
void fill(B, std::span<std::byte> out, float deviation, std::uint64_t seed, std::uint64_t first_block) {
  constexpr std::size_t levels = 4096;
  constexpr int spare_bits = 4;  // of the 16 that each draw has
  const float reach = deviation * std::numbers::sqrt3_v<float>;
  std::array<B, levels> table;
  for (std::size_t i = 0; i < levels; ++i) {
    table[i] = encode(reach * (static_cast<float>(2 * i + 1) / static_cast<float>(levels) - 1.0f), B{});
  }
  std::uint64_t index = first_block / 4;
  for (std::size_t at = 0; at < out.size(); ++index) {
    const std::uint64_t word = random_word(seed, index);
    for (int lane = 0; lane < 64 && at < out.size(); lane += 16, at += sizeof(B)) {
      const B& value = table[((word >> lane) & 0xFFFFu) >> spare_bits];
      std::memcpy(out.data() + at, &value, sizeof(B));
    }
  }
}

}  // namespace

void fill_random(WeightFormat format, std::span<std::byte> blocks, float deviation, std::uint64_t seed,
                 std::uint64_t first_block) {
  expects(first_block % random_chunk == 0, "fill_random: from the border of a chunk");
  expects(deviation >= 0.001f && deviation <= 1000.0f, "fill_random: a deviation that every scale can hold");
  visit(format, [&]<Block B>(B block) {
    expects(blocks.size() % sizeof(B) == 0, "fill_random: whole blocks");
    fill(block, blocks, deviation, seed, first_block);
  });
}

}  // namespace inferno
