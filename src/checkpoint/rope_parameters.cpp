#include "checkpoint/rope_parameters.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/utf8.h"

namespace inferno {
namespace {

constexpr std::string_view newer = "rope_parameters.";
constexpr std::string_view older = "rope_scaling.";

// Where the newer object's `field` belongs.
std::string older_name(std::string_view field) {
  if (field == "rope_theta" || field == "partial_rotary_factor") return std::string(field);
  if (field == "type") return "rope_scaling.rope_type";
  return std::string(older) + std::string(field);
}

void move(Config::Values& values, std::string_view from, const std::string& to, std::string_view origin) {
  if (from == to) return;
  auto taken = values.extract(values.find(from));
  const auto [place, fresh] = values.try_emplace(to, taken.mapped());
  if (!fresh && place->second != taken.mapped()) {
    fail(ErrorKind::corrupt,
         fmt::format("{}: {} and {} contradict each other", origin, quote(from), quote(to)));
  }
}

std::vector<std::string> keys_under(const Config::Values& values, std::string_view prefix) {
  std::vector<std::string> keys;
  for (auto at = values.lower_bound(prefix); at != values.end() && at->first.starts_with(prefix); ++at) {
    keys.push_back(at->first);
  }
  return keys;
}

bool is_per_layer_kind(std::string_view field) {
  return field.find('.') != std::string_view::npos;
}

}  // namespace

void use_older_rope_names(Config::Values& values, std::vector<std::string>& others, std::string_view origin) {
  for (const std::string_view prefix : {newer, older}) {
    for (const std::string& key : keys_under(values, prefix)) {
      const std::string_view field = std::string_view(key).substr(prefix.size());
      if (!is_per_layer_kind(field)) move(values, key, older_name(field), origin);
    }
  }
  for (std::string& key : others) {
    const std::string_view field = std::string_view(key).substr(std::min(newer.size(), key.size()));
    if (key.starts_with(newer) && !is_per_layer_kind(field)) key = std::string(older) + std::string(field);
  }
  const auto kind = values.find("rope_scaling.rope_type");
  if (kind == values.end() || kind->second != Config::Value(std::string("default"))) return;
  values.erase(kind);
  const std::string context = "rope_scaling.original_max_position_embeddings";
  if (values.contains(context)) move(values, context, "original_max_position_embeddings", origin);
}

}  // namespace inferno
