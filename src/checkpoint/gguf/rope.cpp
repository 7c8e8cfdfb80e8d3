#include "checkpoint/gguf/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace inferno {
namespace {

using Values = Config::Values;

constexpr std::int64_t max_factors = 4096;
constexpr std::string_view kind_key = "rope_scaling.rope_type";

std::optional<double> number(const Values& values, std::string_view key) {
  const auto found = values.find(key);
  const auto* value = found == values.end() ? nullptr : std::get_if<double>(&found->second);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<std::string> text(const Values& values, std::string_view key) {
  const auto found = values.find(key);
  const auto* value = found == values.end() ? nullptr : std::get_if<std::string>(&found->second);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

void erase(Values& values, std::string_view key) {
  if (const auto found = values.find(key); found != values.end()) values.erase(found);
}

// Empty when there is no such tensor.
std::vector<double> factors(const GgufRopeSource& source, std::string_view name) {
  const auto tensor = source.tensors.find(name);
  if (!tensor) return {};
  if (tensor->format != WeightFormat::f32 || tensor->shape.size() != 1 || tensor->shape[0] > max_factors) {
    fail(ErrorKind::corrupt, fmt::format("{}: expected tensor \"{}\" to be a list of at most {} f32 numbers",
                                         source.origin, name, max_factors));
  }
  std::vector<float> read(static_cast<std::size_t>(tensor->shape[0]));
  tensor->read(0, std::as_writable_bytes(std::span(read)));
  const auto sound = [](float factor) { return std::isfinite(factor) && factor > 0.0f; };
  if (!std::all_of(read.begin(), read.end(), sound)) {
    fail(ErrorKind::corrupt,
         fmt::format("{}: expected tensor \"{}\" to hold finite, positive numbers", source.origin, name));
  }
  return {read.begin(), read.end()};
}

std::optional<double> head_size(const Values& values) {
  if (const auto given = number(values, "head_dim")) return given;
  const auto width = number(values, "hidden_size");
  const auto heads = number(values, "num_attention_heads");
  if (!width || !heads || *heads < 1) return std::nullopt;
  return std::floor(*width / *heads);
}

// The share that gives `dims` again when a head of `size` is multiplied by it in float and cut to a whole
// number.
double share_of(double dims, double size) {
  auto share = static_cast<float>(dims / size);
  if (std::trunc(static_cast<float>(size) * share) < static_cast<float>(dims)) {
    share = std::nextafter(share, std::numeric_limits<float>::infinity());
  }
  return static_cast<double>(share);
}

void settle_heads(Values& values, std::string_view architecture) {
  const std::string value_length = fmt::format("{}.attention.value_length", architecture);
  const std::string dims_key = fmt::format("{}.rope.dimension_count", architecture);
  const auto size = head_size(values);
  if (!size || *size < 1) return;
  if (number(values, value_length) == size) erase(values, value_length);
  const auto dims = number(values, dims_key);
  if (!dims || *dims < 1 || *dims > *size) return;
  erase(values, dims_key);
  // Phi rotates half of a head unless its config says otherwise; the others rotate all of it.
  if (*dims != *size || architecture == "phi2")
    values.emplace("partial_rotary_factor", share_of(*dims, *size));
}

// llama.cpp takes a factor without a kind for linear scaling, and a linear factor of 0 or 1 for none.
void settle_kind(Values& values, std::string_view architecture) {
  const std::string old_factor = fmt::format("{}.rope.scale_linear", architecture);
  if (const auto factor = number(values, old_factor)) {
    erase(values, old_factor);
    values.try_emplace("rope_scaling.factor", *factor);
  }
  const double factor = number(values, "rope_scaling.factor").value_or(0.0);
  const std::string kind = text(values, kind_key).value_or("linear");
  if (kind != "none" && !(kind == "linear" && (factor == 0.0 || factor == 1.0))) {
    values.try_emplace(std::string(kind_key), kind);
    return;
  }
  erase(values, kind_key);
  erase(values, "rope_scaling.factor");
  erase(values, "rope_scaling.original_max_position_embeddings");
}

// Hugging Face computes this factor for LongRoPE where GGUF stores the result.
bool is_the_usual_factor(const Values& values, double attention_factor) {
  const auto original = number(values, "original_max_position_embeddings");
  const auto context = number(values, "max_position_embeddings");
  if (!original || !context || *original <= 1) return false;
  const double scale = *context / *original;
  const double usual = scale <= 1.0 ? 1.0 : std::sqrt(1.0 + std::log(scale) / std::log(*original));
  return std::abs(usual - attention_factor) < 1e-3;
}

void add_long_factors(Values& values, const GgufRopeSource& source) {
  std::vector<double> longer = factors(source, "rope_factors_long.weight");
  std::vector<double> shorter = factors(source, "rope_factors_short.weight");
  if (longer.empty() && shorter.empty()) return;
  if (longer.size() != shorter.size()) {
    fail(ErrorKind::corrupt,
         fmt::format("{}: expected as many long rope factors as short ones, found {} and {}", source.origin,
                     longer.size(), shorter.size()));
  }
  values.insert_or_assign(std::string(kind_key), std::string("longrope"));
  values.insert_or_assign("rope_scaling.long_factor", std::move(longer));
  values.insert_or_assign("rope_scaling.short_factor", std::move(shorter));
}

void add_frequency_factors(Values& values, const GgufRopeSource& source) {
  std::vector<double> found = factors(source, "rope_freqs.weight");
  if (std::all_of(found.begin(), found.end(), [](double factor) { return factor == 1.0; })) return;
  values.try_emplace(std::string(kind_key), std::string("freq_factors"));
  values.emplace("rope_scaling.freq_factors", std::move(found));
}

// A multiplier on top of what the kind of scaling brings along, except for LongRoPE, where it is all of it.
void settle_attention_factor(Values& values, std::string_view architecture) {
  const std::string key = fmt::format("{}.rope.scaling.attn_factor", architecture);
  const auto factor = number(values, key);
  if (!factor) return;
  if (text(values, kind_key) != "longrope") {
    if (*factor == 1.0) erase(values, key);
    return;
  }
  erase(values, key);
  if (!is_the_usual_factor(values, *factor)) values.try_emplace("rope_scaling.attention_factor", *factor);
}

}  // namespace

void settle_gguf_rope(Values& values, const GgufRopeSource& source) {
  settle_heads(values, source.architecture);
  settle_kind(values, source.architecture);
  add_long_factors(values, source);
  add_frequency_factors(values, source);
  settle_attention_factor(values, source.architecture);
}

}  // namespace inferno
