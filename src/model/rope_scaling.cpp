// Reads config.json's "rope_scaling" (or the newer "rope_parameters", already renamed) into a spec.
#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "model/arch/common.h"

namespace inferno::arch {
namespace {

int original_context(const Config& c) {
  return c.positive("rope_scaling.original_max_position_embeddings",
                    c.positive("original_max_position_embeddings", c.positive("max_position_embeddings")));
}

float positive_number(const Config& c, std::string_view key, float value) {
  if (value > 0.0f) return value;
  fail(ErrorKind::corrupt,
       fmt::format("{}: \"{}\": expected a positive number, found {}", c.origin(), key, value));
}

float required_positive(const Config& c, std::string_view key) {
  return positive_number(c, key, c.number(key));
}

// YaRN's temperature, from Peng et al. 2023, equation 22.
float magnitude_scale(float factor, float weight) {
  return factor <= 1.0f ? 1.0f : 0.1f * weight * std::log(factor) + 1.0f;
}

YarnScaling yarn(const Config& c) {
  const float factor = required_positive(c, "rope_scaling.factor");
  const float top = c.number("rope_scaling.mscale", 0.0f);
  const float bottom = c.number("rope_scaling.mscale_all_dim", 0.0f);
  const float derived = top != 0.0f && bottom != 0.0f
                            ? magnitude_scale(factor, top) / magnitude_scale(factor, bottom)
                            : magnitude_scale(factor, 1.0f);
  return {.factor = factor,
          .beta_fast = c.number("rope_scaling.beta_fast", 32.0f),
          .beta_slow = c.number("rope_scaling.beta_slow", 1.0f),
          .original_context = original_context(c),
          .truncate = c.flag("rope_scaling.truncate", true),
          .attention_factor = c.number("rope_scaling.attention_factor", derived)};
}

LongRopeScaling long_rope(const Config& c) {
  const int original = original_context(c);
  const float stretch =
      static_cast<float>(c.positive("max_position_embeddings")) / static_cast<float>(original);
  const float factor = c.number("rope_scaling.factor", stretch);
  const float derived =
      factor <= 1.0f ? 1.0f : std::sqrt(1.0f + std::log(factor) / std::log(static_cast<float>(original)));
  const float attention = c.number("rope_scaling.attention_factor", derived);
  return {.short_factors = c.numbers("rope_scaling.short_factor"),
          .long_factors = c.numbers("rope_scaling.long_factor"),
          .original_context = original,
          .short_attention_factor = c.number("rope_scaling.short_mscale", attention),
          .long_attention_factor = c.number("rope_scaling.long_mscale", attention)};
}

}  // namespace

RopeScaling rope_scaling(const Config& c) {
  // Some exporters repeat theta inside; both places mean the same.
  c.ignore("rope_scaling.rope_theta");
  const std::string kind = c.text("rope_scaling.rope_type", c.text("rope_scaling.type", "default"));
  c.ignore("rope_scaling.type");
  if (kind == "default" || kind == "none") return NoScaling{};
  if (kind == "freq_factors") return FactorScaling{c.numbers("rope_scaling.freq_factors")};
  if (kind == "linear") return LinearScaling{required_positive(c, "rope_scaling.factor")};
  if (kind == "llama3") {
    return Llama3Scaling{required_positive(c, "rope_scaling.factor"),
                         required_positive(c, "rope_scaling.low_freq_factor"),
                         required_positive(c, "rope_scaling.high_freq_factor"), original_context(c)};
  }
  if (kind == "yarn") return yarn(c);
  if (kind == "longrope" || kind == "su") return long_rope(c);
  fail(ErrorKind::unsupported,
       fmt::format("{}: \"rope_scaling\": expected default, linear, llama3, yarn or longrope, found \"{}\"",
                   c.origin(), kind));
}

}  // namespace inferno::arch
