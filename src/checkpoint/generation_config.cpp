#include "checkpoint/generation_config.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <system_error>

#include "base/error.h"
#include "checkpoint/config_json.h"

namespace inferno {
namespace {

[[noreturn]] void refuse(const Config& values, std::string_view key, std::string_view expected) {
  fail(ErrorKind::corrupt, fmt::format("{}: expected {} for \"{}\"", values.origin(), expected, key));
}

// nullopt also for -1, which older files use for "none".
std::optional<TokenId> token(const Config& values, std::string_view key, double id) {
  constexpr TokenId max = std::numeric_limits<TokenId>::max();
  if (!(id >= -1 && id <= max) || std::trunc(id) != id) refuse(values, key, "token ids");
  return id < 0 ? std::nullopt : std::optional(static_cast<TokenId>(id));
}

// nullptr if the value has another type.
template <class T>
const T* value_as(const Config& values, std::string_view key) {
  const auto found = values.values().find(key);
  return found == values.values().end() ? nullptr : std::get_if<T>(&found->second);
}

std::optional<TokenId> one_token(const Config& values, std::string_view key) {
  if (!values.has(key)) return std::nullopt;
  const auto* id = value_as<double>(values, key);
  if (id == nullptr) refuse(values, key, "a token id");
  values.ignore(key);
  return token(values, key, *id);
}

std::vector<TokenId> tokens(const Config& values, std::string_view key) {
  const auto* ids = value_as<std::vector<double>>(values, key);
  if (ids == nullptr) {
    const std::optional<TokenId> one = one_token(values, key);
    return one ? std::vector{*one} : std::vector<TokenId>{};
  }
  values.ignore(key);
  std::vector<TokenId> result;
  for (const double id : *ids) {
    if (const auto one = token(values, key, id)) result.push_back(*one);
  }
  return result;
}

std::optional<float> number(const Config& values, std::string_view key, float min, float max) {
  if (!values.has(key)) return std::nullopt;
  const float value = values.number(key);
  if (value < min || value > max) refuse(values, key, fmt::format("a number from {} to {}", min, max));
  return value;
}

std::optional<int> top_k(const Config& values) {
  if (!values.has("top_k")) return std::nullopt;
  // Some files use -1 for "off".
  const auto* value = value_as<double>(values, "top_k");
  if (value == nullptr || *value != -1.0) return values.integer("top_k");
  values.ignore("top_k");
  return 0;
}

bool is_present(const std::filesystem::path& path) {
  std::error_code ignored;  // an unreadable file fails when it is opened, with a better message
  return std::filesystem::exists(path, ignored);
}

}  // namespace

GenerationConfig generation_config(const Config& values) {
  constexpr float max = std::numeric_limits<float>::max();
  constexpr float min = std::numeric_limits<float>::min();
  return {.eos = tokens(values, "eos_token_id"),
          .bos = one_token(values, "bos_token_id"),
          .pad = one_token(values, "pad_token_id"),
          .temperature = number(values, "temperature", 0.0f, max),
          .top_k = top_k(values),
          .top_p = number(values, "top_p", 0.0f, 1.0f),
          .repetition_penalty = number(values, "repetition_penalty", min, max)};
}

GenerationConfig read_generation_config(const std::filesystem::path& directory) {
  GenerationConfig result;
  if (const auto path = directory / "generation_config.json"; is_present(path)) {
    result = generation_config(read_config(path));
  }
  if (const auto path = directory / "config.json"; is_present(path)) {
    const GenerationConfig fallback = generation_config(read_config(path));
    if (result.eos.empty()) result.eos = fallback.eos;
    if (!result.bos) result.bos = fallback.bos;
    if (!result.pad) result.pad = fallback.pad;
  }
  return result;
}

}  // namespace inferno
