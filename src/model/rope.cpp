#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace inferno {
namespace {

std::vector<double> plain(const Rope& rope) {
  std::vector<double> inverse(static_cast<std::size_t>(rope.dims / 2));
  for (std::size_t i = 0; i < inverse.size(); ++i) {
    inverse[i] = std::pow(static_cast<double>(rope.theta), -2.0 * static_cast<double>(i) / rope.dims);
  }
  return inverse;
}

RopeFrequencies scaled(const NoScaling&, const Rope& rope, int) {
  return {.inverse = plain(rope)};
}

RopeFrequencies scaled(const LinearScaling& scaling, const Rope& rope, int) {
  RopeFrequencies out = {.inverse = plain(rope)};
  for (double& f : out.inverse) f /= scaling.factor;
  return out;
}

RopeFrequencies scaled(const FactorScaling& scaling, const Rope& rope, int) {
  RopeFrequencies out = {.inverse = plain(rope)};
  expects(scaling.factors.size() == out.inverse.size(), "one factor for each rotary pair");
  for (std::size_t i = 0; i < out.inverse.size(); ++i) out.inverse[i] /= scaling.factors[i];
  return out;
}

// Long waves are stretched by the factor, short ones left alone, those between blended.
RopeFrequencies scaled(const Llama3Scaling& scaling, const Rope& rope, int) {
  RopeFrequencies out = {.inverse = plain(rope)};
  const double longest = scaling.original_context / static_cast<double>(scaling.low_freq_factor);
  const double shortest = scaling.original_context / static_cast<double>(scaling.high_freq_factor);
  for (double& f : out.inverse) {
    const double wavelength = 2.0 * std::numbers::pi / f;
    if (wavelength > longest) {
      f /= scaling.factor;
    } else if (wavelength >= shortest) {
      const double smooth = (scaling.original_context / wavelength - scaling.low_freq_factor) /
                            (scaling.high_freq_factor - scaling.low_freq_factor);
      f = (1.0 - smooth) * f / scaling.factor + smooth * f;
    }
  }
  return out;
}

// Dimensions that turn more than beta_fast times over the original context keep their frequency, those below
// beta_slow are interpolated, with a ramp between.
RopeFrequencies scaled(const YarnScaling& scaling, const Rope& rope, int) {
  RopeFrequencies out = {.inverse = plain(rope), .attention_factor = scaling.attention_factor};
  const auto dimension_turning = [&](double turns) {
    return rope.dims * std::log(scaling.original_context / (turns * 2.0 * std::numbers::pi)) /
           (2.0 * std::log(static_cast<double>(rope.theta)));
  };
  double low = dimension_turning(scaling.beta_fast);
  double high = dimension_turning(scaling.beta_slow);
  if (scaling.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, rope.dims - 1.0);
  if (low == high) high += 0.001;  // no division by zero
  for (std::size_t i = 0; i < out.inverse.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    out.inverse[i] = out.inverse[i] / scaling.factor * ramp + out.inverse[i] * (1.0 - ramp);
  }
  return out;
}

RopeFrequencies scaled(const LongRopeScaling& scaling, const Rope& rope, int context) {
  const bool is_long = uses_long_factors(scaling, context);
  const std::vector<float>& factors = is_long ? scaling.long_factors : scaling.short_factors;
  RopeFrequencies out = scaled(FactorScaling{factors}, rope, context);
  out.attention_factor = is_long ? scaling.long_attention_factor : scaling.short_attention_factor;
  return out;
}

}  // namespace

bool uses_long_factors(const LongRopeScaling& scaling, int context) {
  return context > scaling.original_context;
}

RopeFrequencies rope_frequencies(const Rope& rope, int context) {
  return std::visit([&](const auto& scaling) { return scaled(scaling, rope, context); }, rope.scaling);
}

std::vector<float> rope_table(const Rope& rope, int context) {
  const RopeFrequencies frequencies = rope_frequencies(rope, context);
  const std::size_t half = frequencies.inverse.size();
  std::vector<float> table(static_cast<std::size_t>(context) * 2 * half);
  for (std::size_t position = 0; position < static_cast<std::size_t>(context); ++position) {
    float* row = table.data() + position * 2 * half;
    for (std::size_t i = 0; i < half; ++i) {
      // The reference rounds frequency and angle to float before taking the sine; far positions show it.
      const float frequency = static_cast<float>(frequencies.inverse[i]);
      const double angle = static_cast<double>(static_cast<float>(position) * frequency);
      row[i] = static_cast<float>(std::cos(angle) * frequencies.attention_factor);
      row[half + i] = static_cast<float>(std::sin(angle) * frequencies.attention_factor);
    }
  }
  return table;
}

}  // namespace inferno
