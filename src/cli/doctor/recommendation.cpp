#include "cli/doctor/recommendation.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/sizes.h"
#include "base/utf8.h"
#include "cli/doctor/expected_speed.h"

namespace inferno::doctor {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t max_models = 3;

// Tokens/s: about as fast as one reads, much faster, and as fast as one looks.
constexpr double fluent = 5.0, fast = 15.0, instant = 50.0;

// Beside the weights: the KV cache of a short conversation and the workspace.
std::uint64_t needed_bytes(std::uint64_t weights) {
  constexpr std::uint64_t workspace = std::uint64_t{512} << 20;
  return weights + weights / 8 + workspace;
}

// A quantized mixture reads the same share of its weights as the original.
std::uint64_t read_per_token(const hub::Alias& alias, const hub::AliasChoice& choice) {
  if (alias.token_bytes == 0 || choice.bytes >= alias.original_bytes)
    return alias.token_bytes == 0 ? choice.bytes : alias.token_bytes;
  const double share = static_cast<double>(alias.token_bytes) / static_cast<double>(alias.original_bytes);
  return static_cast<std::uint64_t>(share * static_cast<double>(choice.bytes));
}

// All that fit, one for each model, the most capable first.
std::vector<Recommendation> fitting(std::span<const hub::Alias> aliases, const Machine& machine) {
  std::vector<Recommendation> models;
  for (const hub::Alias& alias : aliases) {
    const hub::AliasChoice choice = hub::choose(alias, machine.memory);
    if (!alias.is_chat || choice.bytes == 0 || needed_bytes(choice.bytes) > machine.device.free_bytes)
      continue;
    if (std::ranges::find(models, choice.model, &Recommendation::model) != models.end()) continue;
    const std::uint64_t read = read_per_token(alias, choice);
    models.push_back({.name = alias.name,
                      .model = choice.model,
                      .bytes = choice.bytes,
                      .original_bytes = alias.original_bytes,
                      .tokens_per_second = expected_speed(machine.device, machine.bandwidth, read),
                      .is_here = false});
  }
  std::ranges::stable_sort(models, std::greater(), &Recommendation::original_bytes);
  return models;
}

}  // namespace

std::vector<Recommendation> recommend(std::span<const hub::Alias> aliases, const Machine& machine) {
  std::vector<Recommendation> left = fitting(aliases, machine), chosen;
  const auto take_first = [&](double min_speed) {
    const auto found = std::ranges::find_if(
        left, [&](const Recommendation& one) { return one.tokens_per_second >= min_speed; });
    if (found == left.end() || chosen.size() == max_models) return;
    chosen.push_back(*found);
    left.erase(found);
  };
  for (const double speed : {fluent, fast, instant}) take_first(speed);
  // A slow machine: what comes nearest.
  std::ranges::stable_sort(left, std::greater(), &Recommendation::tokens_per_second);
  while (chosen.size() < max_models && !left.empty()) take_first(0.0);
  std::ranges::stable_sort(chosen, std::greater(), &Recommendation::original_bytes);
  for (Recommendation& one : chosen) one.is_here = machine.has(one.name);
  return chosen;
}

Finding finding_of(const std::vector<Recommendation>& models, const Machine& machine) {
  Json listed = Json::array();
  for (const Recommendation& one : models) {
    listed.push_back({{"name", one.name},
                      {"model", one.model},
                      {"bytes", one.bytes},
                      {"tokens_per_second", one.tokens_per_second},
                      {"here", one.is_here},
                      {"command", "inferno play " + one.name}});
  }
  return {.check = "models",
          .summary =
              fmt::format("{} with a short name fit; weights are read at {:.1f} GB/s",
                          models.empty() ? "none" : "those below and smaller ones", machine.bandwidth / 1e9),
          .facts = Json{{"device", machine.device.name},
                        {"bandwidth", machine.bandwidth},
                        {"recommended", std::move(listed)}}
                       .dump(-1, ' ', false, Json::error_handler_t::replace)};
}

std::string described(const std::vector<Recommendation>& models) {
  if (models.empty()) return "this machine is good for the built-in model: inferno play builtin\n";
  std::size_t width = 0;
  for (const Recommendation& one : models) width = std::max(width, one.name.size());
  std::string text = "this machine is good for:\n";
  for (const Recommendation& one : models) {
    const std::string speed = one.tokens_per_second < 9.95 ? fmt::format("{:.1f}", one.tokens_per_second)
                                                           : fmt::format("{:.0f}", one.tokens_per_second);
    text += fmt::format("  inferno play {:<{}}  about {} tok/s, {}{}\n", one.name, width, speed,
                        human_size(one.bytes), one.is_here ? ", on this machine" : " to download");
  }
  return text;
}

}  // namespace inferno::doctor
