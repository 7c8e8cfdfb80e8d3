// Sixteen lanes as four NEON registers, with the names of machine_avx512.h.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

namespace inferno::cpu {
// NOLINTNEXTLINE: each including file must have a copy of its own, see kernels.h
namespace {

struct Neon {
  struct Floats {
    float32x4_t part[4];
  };
  struct Words {
    int16x8_t part[4];
  };
  struct Ints {
    int32x4_t part[4];
  };

  static constexpr int float_chains = 1;  // sums for each token; two for each of 4 do not fit the registers
  static constexpr int attend_queries = 2, attend_vectors = 2;

  // A vector whose quarter i is part(i).
  template <class Vector, class Part>
  [[gnu::always_inline]] static Vector of(const Part& part) {
    return {{part(0), part(1), part(2), part(3)}};
  }

  static Words line(const void* from) {
    const auto* words = static_cast<const std::int16_t*>(from);
    return of<Words>([=](int i) { return vld1q_s16(words + 8 * i); });
  }
  static Words less(Words a, Words b) {
    return of<Words>([&](int i) { return vsubq_s16(a.part[i], b.part[i]); });
  }
  static Words words(int value) {
    return of<Words>([=](int) { return vdupq_n_s16(static_cast<std::int16_t>(value)); });
  }
  template <int count>
  static Words right(Words x) {
    if constexpr (count == 0)
      return x;
    else
      return of<Words>(
          [&](int i) { return vreinterpretq_s16_u16(vshrq_n_u16(vreinterpretq_u16_s16(x.part[i]), count)); });
  }
  template <int count>
  static Words left(Words x) {
    return of<Words>([&](int i) { return vshlq_n_s16(x.part[i], count); });
  }
  static Words words_right_by(Words x, int count) {
    const int16x8_t n = vdupq_n_s16(static_cast<std::int16_t>(-count));  // negative counts shift to the right
    return of<Words>(
        [&](int i) { return vreinterpretq_s16_u16(vshlq_u16(vreinterpretq_u16_s16(x.part[i]), n)); });
  }
  static Words both(Words a, Words b) {
    return of<Words>([&](int i) { return vandq_s16(a.part[i], b.part[i]); });
  }
  static Words merge(Words low, Words high, Words mask) {
    return of<Words>([&](int i) { return vorrq_s16(low.part[i], vandq_s16(high.part[i], mask.part[i])); });
  }
  using Table = int8x16_t;
  static Table table(const std::int8_t* entries) { return vld1q_s8(entries); }
  static Words look_up(Table table, Words index) {
    // The entry lands in the lower byte; the shifts extend its sign.
    return of<Words>([&](int i) {
      const uint8x16_t at = vreinterpretq_u8_s16(vandq_s16(index.part[i], vdupq_n_s16(15)));
      return vshrq_n_s16(vshlq_n_s16(vreinterpretq_s16_s8(vqtbl1q_s8(table, at)), 8), 8);
    });
  }

  static Ints no_ints() { return ints(0); }
  static Ints ints(int value) {
    return of<Ints>([=](int) { return vdupq_n_s32(value); });
  }
  static Ints bytes(const std::uint8_t* from) {
    const uint8x16_t x = vld1q_u8(from);
    const uint16x8_t low = vmovl_u8(vget_low_u8(x)), high = vmovl_high_u8(x);
    return widened(low, high);
  }
  static Ints signed_bytes(const std::int8_t* from) {
    const int8x16_t x = vld1q_s8(from);
    const int16x8_t low = vmovl_s8(vget_low_s8(x)), high = vmovl_high_s8(x);
    return {{vmovl_s16(vget_low_s16(low)), vmovl_high_s16(low), vmovl_s16(vget_low_s16(high)),
             vmovl_high_s16(high)}};
  }
  static Ints halves(const std::uint16_t* from) { return widened(vld1q_u16(from), vld1q_u16(from + 8)); }
  static Ints add(Ints a, Ints b) {
    return of<Ints>([&](int i) { return vaddq_s32(a.part[i], b.part[i]); });
  }
  static Ints masked(Ints a, int mask) {
    return of<Ints>([&](int i) { return vandq_s32(a.part[i], vdupq_n_s32(mask)); });
  }
  static Ints either(Ints a, Ints b) {
    return of<Ints>([&](int i) { return vorrq_s32(a.part[i], b.part[i]); });
  }
  static Ints larger(Ints a, Ints b) {
    return of<Ints>([&](int i) { return vmaxq_s32(a.part[i], b.part[i]); });
  }
  static Ints right_by(Ints a, int count) {
    return of<Ints>([&](int i) {
      return vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(a.part[i]), vdupq_n_s32(-count)));
    });
  }
  template <int count>
  static Ints right_signed(Ints a) {
    if constexpr (count == 0)
      return a;
    else
      return of<Ints>([&](int i) { return vshrq_n_s32(a.part[i], count); });
  }
  static Ints left_by(Ints a, int count) {
    return of<Ints>([&](int i) { return vshlq_s32(a.part[i], vdupq_n_s32(count)); });
  }
  static int largest(Ints a) {
    return vmaxvq_s32(vmaxq_s32(vmaxq_s32(a.part[0], a.part[1]), vmaxq_s32(a.part[2], a.part[3])));
  }
  static int total(Ints a) {
    return vaddvq_s32(vaddq_s32(vaddq_s32(a.part[0], a.part[1]), vaddq_s32(a.part[2], a.part[3])));
  }
  static Ints rounded(Floats a) {
    return of<Ints>([&](int i) { return vcvtnq_s32_f32(a.part[i]); });
  }
  static Floats to_floats(Ints a) {
    return of<Floats>([&](int i) { return vcvtq_f32_s32(a.part[i]); });
  }
  static Floats as_floats(Ints a) {
    return of<Floats>([&](int i) { return vreinterpretq_f32_s32(a.part[i]); });
  }
  static Ints as_ints(Floats a) {
    return of<Ints>([&](int i) { return vreinterpretq_s32_f32(a.part[i]); });
  }
  static void store_words(std::int16_t* to, Ints a, Ints b) {
    const Words packed = {{narrowed(a, 0), narrowed(a, 2), narrowed(b, 0), narrowed(b, 2)}};
    for (int i = 0; i < 4; ++i) vst1q_s16(to + 8 * i, packed.part[i]);
  }
  static void store_ints(std::int32_t* to, Ints a) {
    for (int i = 0; i < 4; ++i) vst1q_s32(to + 4 * i, a.part[i]);
  }

  static Floats no_floats() { return floats(0.0f); }
  static Floats floats(float value) {
    return of<Floats>([=](int) { return vdupq_n_f32(value); });
  }
  static Floats load(const float* from) {
    return of<Floats>([=](int i) { return vld1q_f32(from + 4 * i); });
  }
  static Floats load_some(const float* from, int count) {
    if (count >= 16) return load(from);
    float some[16] = {};
    if (count > 0) __builtin_memcpy(some, from, static_cast<std::size_t>(count) * sizeof(float));
    return load(some);
  }
  static Floats from_halves(const std::uint16_t* from) {
    return of<Floats>([=](int i) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from + 4 * i))); });
  }
  static Floats from_e4m3(const std::uint8_t* from) {  // see machine_avx512.h
    const int8x16_t codes = vreinterpretq_s8_u8(vld1q_u8(from));
    const int16x8_t wide[2] = {vmovl_s8(vget_low_s8(codes)), vmovl_high_s8(codes)};
    const int16x8_t mask = vdupq_n_s16(static_cast<std::int16_t>(0xBFFF));
    const float16x8_t low = vreinterpretq_f16_s16(vandq_s16(vshlq_n_s16(wide[0], 7), mask));
    const float16x8_t high = vreinterpretq_f16_s16(vandq_s16(vshlq_n_s16(wide[1], 7), mask));
    return {{vcvt_f32_f16(vget_low_f16(low)), vcvt_high_f32_f16(low), vcvt_f32_f16(vget_low_f16(high)),
             vcvt_high_f32_f16(high)}};
  }
  static Floats even_bf16(Words x) {
    return of<Floats>(
        [&](int i) { return vreinterpretq_f32_s32(vshlq_n_s32(vreinterpretq_s32_s16(x.part[i]), 16)); });
  }
  static Floats odd_bf16(Words x) {
    const int32x4_t upper = vdupq_n_s32(static_cast<std::int32_t>(0xFFFF0000u));
    return of<Floats>(
        [&](int i) { return vreinterpretq_f32_s32(vandq_s32(vreinterpretq_s32_s16(x.part[i]), upper)); });
  }
  static void store(float* to, Floats x) {
    for (int i = 0; i < 4; ++i) vst1q_f32(to + 4 * i, x.part[i]);
  }
  static void store_some(float* to, Floats x, int count) {
    if (count >= 16) return store(to, x);
    float some[16];
    store(some, x);
    if (count > 0) __builtin_memcpy(to, some, static_cast<std::size_t>(count) * sizeof(float));
  }
  static Floats plus(Floats a, Floats b) {
    return of<Floats>([&](int i) { return vaddq_f32(a.part[i], b.part[i]); });
  }
  static Floats minus(Floats a, Floats b) {
    return of<Floats>([&](int i) { return vsubq_f32(a.part[i], b.part[i]); });
  }
  static Floats times(Floats a, Floats b) {
    return of<Floats>([&](int i) { return vmulq_f32(a.part[i], b.part[i]); });
  }
  static Floats over(Floats a, Floats b) {
    return of<Floats>([&](int i) { return vdivq_f32(a.part[i], b.part[i]); });
  }
  static Floats smaller(Floats a, Floats b) {
    return of<Floats>([&](int i) { return vminq_f32(a.part[i], b.part[i]); });
  }
  static Floats larger_of(Floats a, Floats b) {
    return of<Floats>([&](int i) { return vmaxq_f32(a.part[i], b.part[i]); });
  }
  static Floats fma(Floats a, Floats b, Floats c) {
    return of<Floats>([&](int i) { return vfmaq_f32(c.part[i], a.part[i], b.part[i]); });
  }
  static float sum(Floats a) {
    return vaddvq_f32(vaddq_f32(vaddq_f32(a.part[0], a.part[1]), vaddq_f32(a.part[2], a.part[3])));
  }
  static float top(Floats a) {
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(a.part[0], a.part[1]), vmaxq_f32(a.part[2], a.part[3])));
  }
  static Floats only(Floats x, int low, int high, Floats instead) {
    constexpr std::int32_t lanes_here[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return of<Floats>([&](int i) {
      const int32x4_t lane = vld1q_s32(lanes_here + 4 * i);
      const uint32x4_t inside =
          vandq_u32(vcgeq_s32(lane, vdupq_n_s32(low)), vcleq_s32(lane, vdupq_n_s32(high)));
      return vbslq_f32(inside, x.part[i], instead.part[i]);
    });
  }

  // NEON multiplies lanes singly: the first column of all rows, then the second.
  static Ints dot(Ints sum, Words weights, const std::int32_t* pair) {
    const int16x4_t x = vreinterpret_s16_s32(vdup_n_s32(*pair));
    for (int i = 0; i < 2; ++i) {
      const int16x8_t first = vuzp1q_s16(weights.part[2 * i], weights.part[2 * i + 1]);
      const int16x8_t second = vuzp2q_s16(weights.part[2 * i], weights.part[2 * i + 1]);
      int32x4_t& low = sum.part[2 * i];
      int32x4_t& high = sum.part[2 * i + 1];
      low = vmlal_lane_s16(vmlal_lane_s16(low, vget_low_s16(first), x, 0), vget_low_s16(second), x, 1);
      high = vmlal_high_lane_s16(vmlal_high_lane_s16(high, first, x, 0), second, x, 1);
    }
    return sum;
  }
  // 16 numbers as 256 * high + low, four in an int in the order 0 2 1 3.
  static void store_quads(std::int32_t* low, std::int32_t* high, Ints a) {
    constexpr std::uint8_t places[16] = {0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15};
    const uint8x16_t order = vld1q_u8(places);
    const int16x8_t first = narrowed(a, 0), second = narrowed(a, 2);
    const auto upper = [](int16x8_t x) { return vshrq_n_s16(vaddq_s16(x, vdupq_n_s16(128)), 8); };
    const auto store_bytes = [order](std::int32_t* to, int16x8_t x, int16x8_t y) {
      const int8x16_t bytes = vqtbl1q_s8(vcombine_s8(vmovn_s16(x), vmovn_s16(y)), order);
      vst1q_s32(to, vreinterpretq_s32_s8(bytes));
    };
    store_bytes(low, first, second);
    store_bytes(high, upper(first), upper(second));
  }

  static void transpose(float* to, std::ptrdiff_t stride, const float* const* rows, int count) {
    for (int group = 0; group < 16; group += 4) {
      Floats x[4];
      for (int j = 0; j < 4; ++j) x[j] = load_some(rows[group + j], count);
      for (int i = 0; i < 4; ++i) {
        const float32x4_t square[4] = {x[0].part[i], x[1].part[i], x[2].part[i], x[3].part[i]};
        transpose_square(to + 4 * i * stride + group, stride, square);
      }
    }
  }

 private:
  static Ints widened(uint16x8_t low, uint16x8_t high) {
    const auto ints = [](uint32x4_t x) { return vreinterpretq_s32_u32(x); };
    return {{ints(vmovl_u16(vget_low_u16(low))), ints(vmovl_high_u16(low)),
             ints(vmovl_u16(vget_low_u16(high))), ints(vmovl_high_u16(high))}};
  }
  // Quarters i and i + 1, what is too large becomes the largest.
  static int16x8_t narrowed(Ints a, int i) {
    return vcombine_s16(vqmovn_s32(a.part[i]), vqmovn_s32(a.part[i + 1]));
  }
  static void transpose_square(float* to, std::ptrdiff_t stride, const float32x4_t* rows) {
    const auto pairs = [](float32x4_t x) { return vreinterpretq_f64_f32(x); };
    const float64x2_t even[2] = {pairs(vtrn1q_f32(rows[0], rows[1])), pairs(vtrn1q_f32(rows[2], rows[3]))};
    const float64x2_t odd[2] = {pairs(vtrn2q_f32(rows[0], rows[1])), pairs(vtrn2q_f32(rows[2], rows[3]))};
    vst1q_f32(to, vreinterpretq_f32_f64(vzip1q_f64(even[0], even[1])));
    vst1q_f32(to + stride, vreinterpretq_f32_f64(vzip1q_f64(odd[0], odd[1])));
    vst1q_f32(to + 2 * stride, vreinterpretq_f32_f64(vzip2q_f64(even[0], even[1])));
    vst1q_f32(to + 3 * stride, vreinterpretq_f32_f64(vzip2q_f64(odd[0], odd[1])));
  }
};

}  // namespace
}  // namespace inferno::cpu
