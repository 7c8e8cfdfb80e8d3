#include "cli/download/search_results.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/sizes.h"
#include "chat/json.h"
#include "checkpoint/safetensors/header.h"
#include "cli/terminal/text_table.h"
#include "engine/engine_options.h"
#include "model/listed_model.h"

namespace inferno {
namespace {

bool has_ending(const hub::FoundOnHub& found, std::string_view ending) {
  return std::any_of(found.files.begin(), found.files.end(),
                     [&](const std::string& file) { return file.ends_with(ending); });
}

std::string format_of(const hub::FoundOnHub& found) {
  const bool gguf = has_ending(found, ".gguf") || !found.gguf_architecture.empty();
  if (has_ending(found, ".safetensors") || !found.safetensors.empty()) return gguf ? "both" : "safetensors";
  return gguf ? "gguf" : "other";
}

// "1.2 M", "35 k"
std::string short_count(std::int64_t count) {
  const auto value = static_cast<double>(count);
  if (count >= 1'000'000) return fmt::format("{:.1f} M", value / 1e6);
  if (count >= 1'000) return fmt::format("{:.0f} k", value / 1e3);
  return fmt::format("{}", count);
}

std::string short_parameters(std::uint64_t count) {
  const auto value = static_cast<double>(count);
  if (count == 0) return "-";
  return count >= 1'000'000'000 ? fmt::format("{:.1f} B", value / 1e9) : fmt::format("{:.0f} M", value / 1e6);
}

std::string fit_of(const SearchResult& result, const LocalMemory& memory) {
  if (!result.fits) return "?";
  if (!*result.fits) return "no";
  if (result.context == 0) return "yes";
  const std::string context =
      result.context >= 1024 ? fmt::format("{} k", result.context / 1024) : fmt::format("{}", result.context);
  return fmt::format("{}, {}{}", memory.name, result.is_estimate ? "~" : "", context);
}

}  // namespace

LocalMemory local_memory(const Backend& backend) {
  const bool is_gpu = backend.info().kernels.starts_with("sm_");
  return {.name = is_gpu ? "GPU" : "memory", .device = device_memory(backend)};
}

std::uint64_t weight_bytes(const std::map<std::string, std::uint64_t>& parameters) {
  double bytes = 0;
  for (const auto& [name, count] : parameters) {
    const SafetensorsType* type = safetensors_type(name);
    bytes += static_cast<double>(count) * static_cast<double>(type == nullptr ? 2 : type->bytes);
  }
  return static_cast<std::uint64_t>(std::min(bytes, 1e18));
}

SearchResult judge(const hub::FoundOnHub& found, const LocalMemory& memory) {
  SearchResult result = {.id = found.id,
                         .format = format_of(found),
                         .gated = found.gated,
                         .updated = found.last_modified.substr(0, 10)};
  result.parameters = found.parameters;
  result.downloads = found.downloads;
  result.likes = found.likes;
  result.bytes = !found.safetensors.empty() ? weight_bytes(found.safetensors) : found.gguf_bytes;
  if (result.bytes == 0 || memory.device.free_bytes == 0) return result;
  const std::optional<ModelSpec> described = spec_of_config(found.config);
  // If the hub does not count them, one for each byte is close enough for a typical spec.
  const std::uint64_t parameters = found.parameters > 0 ? found.parameters : result.bytes;
  const ModelSpec spec = described ? *described : typical_spec(parameters, found.gguf_context);
  const Footprint footprint =
      estimated_footprint(spec, result.bytes, memory.device, {.max_tokens = EngineOptions().max_step_tokens},
                          {.block_size = EngineOptions().block_size});
  result.fits = footprint.runs();
  result.context = footprint.max_context;
  result.is_estimate = !described;
  return result;
}

std::string search_table(const std::vector<SearchResult>& results, const LocalMemory& memory) {
  std::vector<std::vector<std::string>> rows;
  for (const SearchResult& result : results) {
    rows.push_back({result.id, result.format, short_parameters(result.parameters),
                    result.bytes > 0 ? human_size(result.bytes) : "-", short_count(result.downloads),
                    short_count(result.likes), result.gated.empty() ? "open" : "gated",
                    fit_of(result, memory)});
  }
  return text_table({{"MODEL"},
                     {"FORMAT"},
                     {"PARAMETERS", Align::right},
                     {"SIZE", Align::right},
                     {"DOWNLOADS", Align::right},
                     {"LIKES", Align::right},
                     {"LICENCE"},
                     {"FITS"}},
                    rows);
}

std::string search_json(const std::vector<SearchResult>& results) {
  Json all = Json::array();
  for (const SearchResult& result : results) {
    Json one = {{"id", result.id},
                {"format", result.format},
                {"parameters", result.parameters},
                {"bytes", result.bytes},
                {"downloads", result.downloads},
                {"likes", result.likes},
                {"gated", result.gated.empty() ? Json(false) : Json(result.gated)},
                {"updated", result.updated},
                {"fits", result.fits ? Json(*result.fits) : Json(nullptr)},
                {"context", result.context},
                {"context_is_estimate", result.is_estimate}};
    all.push_back(std::move(one));
  }
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace inferno
