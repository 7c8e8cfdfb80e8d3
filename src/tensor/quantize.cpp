#include "tensor/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "tensor/quantize_k.h"

namespace inferno {
namespace {

constexpr float max_f16 = 65504.0f;
constexpr float max_bf16 = 0x1.FEp127f;

// Ties to even, for the small numbers that codes are: beside this sum a float's last place is 1.
int nearest(float value) {
  constexpr float beside = 0x1.8p23f;
  return static_cast<int>((value + beside) - beside);
}

using inferno::fill;  // of the blocks in quantize_k.h

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

// A block that can be filled from floats.
template <class B>
concept Writable = requires(B block, const float* x) { fill(block, x); };

float largest_magnitude(WeightFormat format) {
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
  const float most = largest_magnitude(format);
  // One bad value is rare: first a loop without a branch, then the search.
  bool fits = true;
  for (const float value : values) fits = fits & (std::abs(value) <= most);
  if (fits) return std::nullopt;
  const auto bad = std::ranges::find_if(values, [&](float value) { return !(std::abs(value) <= most); });
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
