#include "tensor/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"

namespace inferno {
namespace {

constexpr float max_f16 = 65504.0f;
constexpr float max_bf16 = 0x1.FEp127f;

// The nearest whole number, ties to even, for magnitudes below 2^22: the last place of the sum below is 1. A
// library call for each of a billion weights would take most of the time.
float whole(float value) {
  constexpr float beside = 0x1.8p23f;
  return (value + beside) - beside;
}

int nearest(float value) {
  return static_cast<int>(whole(value));
}

int clamped_nearest(float value) {
  return static_cast<int>(whole(std::clamp(value, -1e6f, 1e6f)));
}

void fill(blocks::F32& block, const float* x) {
  block.value = *x;
}
void fill(blocks::F16& block, const float* x) {
  block.bits = float_to_f16(*x);
}
void fill(blocks::Bf16& block, const float* x) {
  block.bits = float_to_bf16(*x);
}

void fill(blocks::Q8_0& block, const float* x) {
  float largest = 0.0f;
  for (int i = 0; i < blocks::Q8_0::elements; ++i) largest = std::max(largest, std::abs(x[i]));
  const float step = largest / 127.0f;
  const float inverse = step > 0.0f ? 1.0f / step : 0.0f;
  block.scale = float_to_f16(step);
  for (int i = 0; i < blocks::Q8_0::elements; ++i) {
    block.quants[i] = static_cast<std::int8_t>(std::clamp(nearest(x[i] * inverse), -127, 127));
  }
}

// Codes reach from -8 to 7: the value of largest magnitude becomes -8, whatever its sign.
void fill(blocks::Q4_0& block, const float* x) {
  float extreme = 0.0f;
  for (int i = 0; i < blocks::Q4_0::elements; ++i) {
    if (std::abs(x[i]) > std::abs(extreme)) extreme = x[i];
  }
  const float step = extreme / -8.0f;
  const float inverse = step != 0.0f ? 1.0f / step : 0.0f;
  block.scale = float_to_f16(step);
  const auto code = [&](int i) { return std::clamp(nearest(x[i] * inverse) + 8, 0, 15); };
  for (int i = 0; i < blocks::Q4_0::elements / 2; ++i) {
    block.nibbles[i] = static_cast<std::uint8_t>(code(i) | code(i + 16) << 4);
  }
}

float inverse_of(float step) {
  return step == 0.0f ? 0.0f : 1.0f / step;
}

// x is about step * code - offset.
struct Affine {
  float step = 0.0f;
  float offset = 0.0f;  // never negative: the format subtracts it
};

constexpr float max_code = 15.0f;
constexpr int group_of_4 = 32;

float code_of(float x, const Affine& affine, float inverse) {
  return whole(std::clamp((x + affine.offset) * inverse, 0.0f, max_code));
}

// The search runs through each group some forty times, four values at a time: compilers do not find that by
// themselves in sums of floats, whose order they must keep.
using Four = float __attribute__((vector_size(16)));
using FourBits = std::int32_t __attribute__((vector_size(16)));

Four load(const float* from) {
  Four out;
  std::memcpy(&out, from, sizeof(out));
  return out;
}

float sum(Four values) {
  return (values[0] + values[1]) + (values[2] + values[3]);
}

Four whole_within(Four value, float min, float max) {
  constexpr float beside = 0x1.8p23f;
  const Four lowest = Four{} + min, highest = Four{} + max;
  const FourBits low = value<lowest, high = value> highest;
  value = low ? lowest : value;
  value = high ? highest : value;
  return (value + beside) - beside;
}

Four codes_of(Four x, const Affine& affine, float inverse) {
  return whole_within((x + affine.offset) * inverse, 0.0f, max_code);
}

struct Weighted {
  const float* x;
  float weight[group_of_4] = {};

  float error(const Affine& affine) const {
    const float inverse = inverse_of(affine.step);
    Four all = {};
    for (int i = 0; i < group_of_4; i += 4) {
      const Four value = load(x + i);
      const Four off = codes_of(value, affine, inverse) * affine.step - affine.offset - value;
      all += load(weight + i) * off * off;
    }
    return sum(all);
  }

  // The least-squares line through the codes that `guess` gives. The guess itself when they are all equal.
  Affine fitted(const Affine& guess) const {
    const float inverse = inverse_of(guess.step);
    Four w4 = {}, wx4 = {}, wl4 = {}, wll4 = {}, wxl4 = {};
    for (int i = 0; i < group_of_4; i += 4) {
      const Four value = load(x + i), weights = load(weight + i);
      const Four code = codes_of(value, guess, inverse);
      w4 += weights;
      wx4 += weights * value;
      wl4 += weights * code;
      wll4 += weights * code * code;
      wxl4 += weights * code * value;
    }
    const float w = sum(w4), wx = sum(wx4), wl = sum(wl4), wll = sum(wll4), wxl = sum(wxl4);
    const float determinant = w * wll - wl * wl;
    if (determinant <= 0.0f) return guess;
    const Affine line = {(w * wxl - wx * wl) / determinant, (wl * wxl - wll * wx) / determinant};
    if (line.offset >= 0.0f) return line;
    return {wxl / wll, 0.0f};
  }
};

// Large values matter more: they meet large activations as often as small ones do.
Affine best_affine(std::span<const float> x) {
  const auto [low, high] = std::ranges::minmax(x);
  const float least = std::min(low, 0.0f);
  if (high <= least) return {0.0f, -least};
  Weighted group = {.x = x.data(), .weight = {}};
  float squares = 0.0f;
  for (const float value : x) squares += value * value;
  const float typical = std::sqrt(squares / static_cast<float>(x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) group.weight[i] = typical + std::abs(x[i]);
  Affine best = {(high - least) / max_code, -least};
  float smallest = group.error(best);
  for (int step = 0; step <= 20; ++step) {
    const float codes = max_code - 1.0f + 0.1f * static_cast<float>(step);
    const Affine line = group.fitted({(high - least) / codes, -least});
    if (!(line.step > 0.0f)) continue;
    if (const float error = group.error(line); error < smallest) {
      smallest = error;
      best = line;
    }
  }
  return best;
}

void set_scale(blocks::KScales& scales, int group, int scale, int offset) {
  const auto byte = [](int value) { return static_cast<std::uint8_t>(value); };
  if (group < 4) {
    scales.bytes[group] = byte(scales.bytes[group] | scale);
    scales.bytes[group + 4] = byte(scales.bytes[group + 4] | offset);
    return;
  }
  scales.bytes[group + 4] = byte((scale & 0xF) | (offset & 0xF) << 4);
  scales.bytes[group - 4] = byte(scales.bytes[group - 4] | (scale >> 4) << 6);
  scales.bytes[group] = byte(scales.bytes[group] | (offset >> 4) << 6);
}

constexpr int group_of_6 = 16;
constexpr float half_range = 32.0f;

float signed_code(float x, float inverse) {
  return whole(std::clamp(x * inverse, -32.0f, 31.0f));
}

// The step whose codes are closest to x, weighted by x². 0 if all values are zero.
float best_step(const float* x) {
  float extreme = 0.0f;
  for (int i = 0; i < group_of_6; ++i) {
    if (std::abs(x[i]) > std::abs(extreme)) extreme = x[i];
  }
  if (std::abs(extreme) < 1e-15f) return 0.0f;
  float best = 0.0f, gain = 0.0f;
  for (int shift = -9; shift <= 9; ++shift) {
    const float inverse = -(half_range + 0.1f * static_cast<float>(shift)) / extreme;
    Four with_x4 = {}, with_itself4 = {};
    for (int i = 0; i < group_of_6; i += 4) {
      const Four value = load(x + i);
      const Four code = whole_within(value * inverse, -32.0f, 31.0f);
      const Four weighted = value * value * code;
      with_x4 += weighted * value;
      with_itself4 += weighted * code;
    }
    const float with_x = sum(with_x4), with_itself = sum(with_itself4);
    if (with_itself > 0.0f && with_x * with_x > gain * with_itself) {
      best = with_x / with_itself;
      gain = best * with_x;
    }
  }
  return best;
}

// Q4_K and Q6_K search for their scales: their groups share six- or eight-bit scales under one f16 factor, so
// a good choice is worth much more than in the simple formats.
void fill(blocks::Q4_K& block, const float* x) {
  constexpr int groups = blocks::Q4_K::elements / group_of_4;
  block = {};
  std::array<Affine, groups> wanted;
  float max_step = 0.0f, max_offset = 0.0f;
  for (std::size_t group = 0; group < groups; ++group) {
    wanted[group] = best_affine(std::span(x + group * group_of_4, group_of_4));
    max_step = std::max(max_step, wanted[group].step);
    max_offset = std::max(max_offset, wanted[group].offset);
  }
  block.scale = float_to_f16(max_step / 63.0f);
  block.minimum = float_to_f16(max_offset / 63.0f);
  const auto share = [](float part, float whole_part) {
    return whole_part > 0.0f ? std::min(63, clamped_nearest(63.0f * (part / whole_part))) : 0;
  };
  for (int group = 0; group < groups; ++group) {
    const Affine& want = wanted[static_cast<std::size_t>(group)];
    set_scale(block.groups, group, share(want.step, max_step), share(want.offset, max_offset));
  }
  for (int i = 0; i < blocks::Q4_K::elements; ++i) {
    const int group = i / group_of_4;
    const Affine stored = {f16_to_float(block.scale) * static_cast<float>(block.groups.scale(group)),
                           f16_to_float(block.minimum) * static_cast<float>(block.groups.offset(group))};
    const auto code = static_cast<int>(code_of(x[i], stored, inverse_of(stored.step)));
    std::uint8_t& byte = block.nibbles[i / 64 * 32 + i % 32];
    byte = static_cast<std::uint8_t>(byte | code << (i % 64 / 32 * 4));
  }
}

void fill(blocks::Q6_K& block, const float* x) {
  constexpr int groups = blocks::Q6_K::elements / group_of_6;
  block = {};
  std::array<float, groups> wanted;
  float extreme = 0.0f;
  for (std::size_t group = 0; group < groups; ++group) {
    wanted[group] = best_step(x + group * group_of_6);
    if (std::abs(wanted[group]) > std::abs(extreme)) extreme = wanted[group];
  }
  if (std::abs(extreme) >= 1e-15f) {
    const float inverse = -128.0f / extreme;
    block.scale = float_to_f16(1.0f / inverse);
    for (std::size_t group = 0; group < groups; ++group) {
      block.groups[group] =
          static_cast<std::int8_t>(std::clamp(clamped_nearest(inverse * wanted[group]), -128, 127));
    }
  }
  for (int i = 0; i < blocks::Q6_K::elements; ++i) {
    const float step = f16_to_float(block.scale) * static_cast<float>(block.groups[i / group_of_6]);
    const int code = static_cast<int>(signed_code(x[i], inverse_of(step))) + 32;
    const int half = i / 128;
    std::uint8_t& low = block.low[half * 64 + i % 64];
    low = static_cast<std::uint8_t>(low | (code & 0xF) << (i % 128 / 64 * 4));
    std::uint8_t& high = block.high[half * 32 + i % 32];
    high = static_cast<std::uint8_t>(high | (code >> 4) << (i % 128 / 32 * 2));
  }
}

// A block that can be filled from floats.
template <class B>
concept Writable = requires(B block, const float* x) { fill(block, x); };

float max_magnitude(WeightFormat format) {
  if (format == WeightFormat::f16) return max_f16;
  if (format == WeightFormat::bf16) return max_bf16;
  if (format == WeightFormat::q8_0) return max_f16 * 127.0f;
  if (format == WeightFormat::q4_0) return max_f16 * 8.0f;
  // Scales of the whole block are at most the largest value divided by 63.
  if (format == WeightFormat::q4_k || format == WeightFormat::q6_k) return max_f16 * 60.0f;
  return std::numeric_limits<float>::max();
}

}  // namespace

bool can_quantize(WeightFormat format) {
  return visit(format, []<Block B>(B) { return Writable<B>; });
}

std::optional<std::size_t> first_unfit(WeightFormat format, std::span<const float> values) {
  const float limit = max_magnitude(format);
  // One bad value is rare: first a loop without a branch, then the search.
  bool fits = true;
  for (const float value : values) fits = fits & (std::abs(value) <= limit);
  if (fits) return std::nullopt;
  const auto bad = std::ranges::find_if(values, [&](float value) { return !(std::abs(value) <= limit); });
  return static_cast<std::size_t>(bad - values.begin());
}

void quantize(WeightFormat format, std::span<const float> in, std::span<std::byte> out) {
  visit(format, [&]<Block B>(B block) {
    if constexpr (Writable<B>) {
      constexpr std::size_t elements = B::elements;
      expects(in.size() % elements == 0, "quantize: the input is whole blocks");
      expects(out.size() == in.size() / elements * sizeof(B), "quantize: input and output agree in size");
      for (std::size_t first = 0, at = 0; first < in.size(); first += elements, at += sizeof(B)) {
        fill(block, in.data() + first);
        std::memcpy(out.data() + at, &block, sizeof(B));
      }
    } else {
      expects(false, "quantize: the format can be written");
    }
  });
}

}  // namespace inferno
